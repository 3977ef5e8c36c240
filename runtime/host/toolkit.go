package host

import (
	"context"
	"fmt"
	"strings"

	"brood/models/gpu"
	"brood/models/gpu/cuda"
	"brood/models/gpu/toolkit"
)

// Assembled is what the assembler of a card makes of one text of kernels.
type Assembled struct {
	Source    string // of [gpu.Sources]
	Kernels   int
	Registers int      // the most that a work item of a kernel takes
	Of        string   // which kernel
	Stack     int      // the most bytes of a work item that a kernel keeps in memory
	StackOf   string   // which kernel; "" where none does
	Spills    []string // kernels that keep registers in memory, each with what it keeps
}

// Arithmetics are those that the device may be asked for besides f32/1, see [Device.With].
func (d Device) Arithmetics() []string {
	if d.Info.Tensor == "" {
		return nil
	}
	return gpu.Tensors
}

// Assembler is where NVIDIA's ptxas is, or where it was looked for.
func Assembler() (string, error) { return toolkit.Find("ptxas") }

// Assemble has ptxas assemble all kernels for the card; the error is what it refuses.
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
				a.Spills = append(a.Spills, fmt.Sprintf("%s writes %d bytes of registers and reads %d", u.Kernel, u.Stores, u.Loads))
			}
		}
		out = append(out, a)
	}
	return out, nil
}

// Sanitizer is where NVIDIA's compute-sanitizer is, or where it was looked for.
func Sanitizer() (string, error) { return toolkit.Find("compute-sanitizer") }

// Sanitize has it watch a command by one of its tools, and counts what it finds.
func Sanitize(ctx context.Context, sanitizer, tool string, command ...string) (int, error) {
	return toolkit.Sanitize(ctx, sanitizer, tool, command...)
}
