package host

import (
	"context"
	"fmt"
	"strings"

	"brood/models/gpu"
	"brood/models/gpu/cuda"
	"brood/models/gpu/toolkit"
)

// Assembled is the result of assembling one source of kernels for a card.
type Assembled struct {
	Source    string   // name in [gpu.Sources]
	Kernels   int      // number of kernels
	Registers int      // maximum number of registers per thread over the kernels
	Of        string   // kernel with that maximum
	Stack     int      // maximum stack frame per thread over the kernels, in bytes
	StackOf   string   // kernel with that maximum; "" if no kernel has a stack frame
	Spills    []string // one text per kernel that spills registers to memory
}

// Arithmetics returns the arithmetics that the device supports besides f32/1, see [Device.With].
func (d Device) Arithmetics() []string {
	if d.Info.Tensor == "" {
		return nil
	}
	return gpu.Tensors
}

// Assembler returns the path of NVIDIA's ptxas, or an error with the places that were searched.
func Assembler() (string, error) { return toolkit.Find("ptxas") }

// Assemble assembles all kernels for the card with ptxas, without running them. It returns an error if ptxas rejects a
// source.
func (d Device) Assemble(ctx context.Context, ptxas string) (out []Assembled, err error) {
	arch := "sm_" + strings.ReplaceAll(strings.TrimPrefix(d.Info.Tensor, "cuda"), ".", "")
	for _, name := range gpu.Sources {
		source, err := gpu.Source(name)
		if err != nil {
			return nil, err
		}
		text, err := cuda.PTX(name, source)
		if err != nil {
			return nil, err
		}
		used, err := toolkit.Assemble(ctx, ptxas, arch, text)
		if err != nil {
			return nil, fmt.Errorf("%s for %s: %w", name, arch, err)
		}
		a := Assembled{Source: name, Kernels: len(used)}
		for _, u := range used {
			if u.Registers > a.Registers {
				a.Registers, a.Of = u.Registers, u.Kernel
			}
			if u.Stack > a.Stack {
				a.Stack, a.StackOf = u.Stack, u.Kernel
			}
			if u.Stores+u.Loads > 0 {
				spill := fmt.Sprintf("%s writes %d bytes of registers and reads %d", u.Kernel, u.Stores, u.Loads)
				a.Spills = append(a.Spills, spill)
			}
		}
		out = append(out, a)
	}
	return out, nil
}

// Sanitizer returns the path of NVIDIA's compute-sanitizer, or an error with the places that were searched.
func Sanitizer() (string, error) { return toolkit.Find("compute-sanitizer") }

// Sanitize runs a command under a tool of compute-sanitizer and returns the number of errors that it reports.
func Sanitize(ctx context.Context, sanitizer, tool string, command ...string) (int, error) {
	return toolkit.Sanitize(ctx, sanitizer, tool, command...)
}
