package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"brood/models/engine"
	"brood/models/noise"
	"brood/runtime/host"
)

// benchTensor measures training by tensor cores, of a card that has them, beside the same in float32.
func benchTensor(c *cobra.Command, d host.Device, report func(measurement)) error {
	if len(d.Arithmetics()) == 0 {
		return nil
	}
	for _, arithmetic := range append([]string{""}, d.Arithmetics()...) {
		d := d.With(arithmetic)
		say := func(m measurement) {
			m.Name = cmp.Or(arithmetic, "f32") + ": " + m.Name
			report(m)
		}
		for _, t := range []struct {
			model          string
			batch, members int
			replicas       bool
		}{{"mlp", 128, 256, true}, {"allcnn", 512, 1, false}} {
			if err := benchGradients(c, d, say, t.model, t.batch, t.members, t.replicas); err != nil {
				return fmt.Errorf("%s: %w", t.model, err)
			}
		}
		if err := benchPairs(c, d, say, "full", engine.Noise{}); err != nil {
			return err
		}
	}
	return nil
}

// benchToolkit asks programs of NVIDIA's toolkit, where they are, about the kernels of a card: ptxas what they take of
// a multiprocessor, and compute-sanitizer what a small run does that it may not.
func benchToolkit(c *cobra.Command, d host.Device, report func(measurement)) error {
	if len(d.Arithmetics()) == 0 {
		return nil
	}
	if err := benchAssembler(c, d, report); err != nil {
		return err
	}
	sanitizer, err := host.Sanitizer()
	if err != nil {
		report(notMeasured("compute-sanitizer", "faults", "not run: "+err.Error()))
		return nil
	}
	return benchSanitizer(c, sanitizer, d.Name, report)
}

// assemblerBound is what ptxas may take for all kernels, and sanitizerBound each tool of compute-sanitizer, so that the
// stage ends by itself.
const (
	assemblerBound = 10 * time.Second
	sanitizerBound = 20 * time.Second
)

// benchAssembler has ptxas assemble all kernels; what it refuses, no card can load.
func benchAssembler(c *cobra.Command, d host.Device, report func(measurement)) error {
	ptxas, err := host.Assembler()
	if err != nil {
		report(notMeasured("registers", "registers", "not known: "+err.Error()))
		return nil
	}
	ctx, cancel := context.WithTimeout(c.Context(), assemblerBound)
	defer cancel()
	all, err := d.Assemble(ctx, ptxas)
	if ctx.Err() != nil {
		report(notMeasured("registers", "registers", fmt.Sprintf("ptxas was not done after %s", assemblerBound)))
		return nil
	}
	if err != nil {
		return err
	}
	for _, a := range all {
		report(measurement{
			Name:  "registers, " + a.Source,
			Value: float64(a.Registers),
			Unit:  "registers",
			Note:  fmt.Sprintf("the most of %d kernels, of %s", a.Kernels, a.Of),
		})
		if a.Stack > 0 {
			report(measurement{
				Name:  "stack, " + a.Source,
				Value: float64(a.Stack),
				Unit:  "bytes",
				Note:  "the most that a work item keeps in memory, of " + a.StackOf,
			})
		}
		if len(a.Spills) > 0 {
			return fmt.Errorf("registers that do not fit: %s", strings.Join(a.Spills, ", "))
		}
	}
	return nil
}

// benchSanitizer has compute-sanitizer watch the stage tiny.
func benchSanitizer(c *cobra.Command, sanitizer, device string, report func(measurement)) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, tool := range []string{"memcheck", "racecheck"} {
		ctx, cancel := context.WithTimeout(c.Context(), sanitizerBound)
		n, err := host.Sanitize(ctx, sanitizer, tool, self, "bench", "gpu", "--json", "--stage", "tiny "+device)
		late := ctx.Err() != nil
		cancel()
		if late {
			report(notMeasured("compute-sanitizer "+tool, "faults", fmt.Sprintf("not done after %s", sanitizerBound)))
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", tool, err)
		}
		report(measurement{
			Name:  "compute-sanitizer " + tool,
			Value: float64(n),
			Unit:  "faults",
			Note:  "gradients and candidates of small nets",
		})
		if n > 0 {
			return fmt.Errorf("compute-sanitizer finds %d faults: run it with --tool %s on brood bench gpu --stage 'tiny %s'", n,
				tool, device)
		}
	}
	return nil
}

// benchTiny does a gradient and some candidates of small nets in each arithmetic of a device.
func benchTiny(c *cobra.Command, d host.Device, report func(measurement)) error {
	for _, arithmetic := range append([]string{""}, d.Arithmetics()...) {
		began := time.Now()
		for _, model := range []string{"mlp-small", "lenet"} {
			if err := tinyTasks(c, d.With(arithmetic), model); err != nil {
				return fmt.Errorf("%s: %w", model, err)
			}
		}
		report(measurement{
			Name:  cmp.Or(arithmetic, "f32"),
			Value: time.Since(began).Seconds(),
			Unit:  "s",
			Note:  "engines, gradients and candidates of two small nets",
		})
	}
	return nil
}

func tinyTasks(c *cobra.Command, d host.Device, model string) error {
	e, net, set, err := onDevice(d, model, 8)
	if err != nil {
		return err
	}
	defer e.Close()
	x, err := e.Alloc(4, net.Layout.Params)
	if err != nil {
		return err
	}
	var stats engine.Mat
	if n := net.Layout.Stats; n > 0 {
		if stats, err = e.Alloc(4, n); err != nil {
			return err
		}
	}
	few := set.Train()[:4]
	return errors.Join(e.Do(c.Context(),
		engine.Gradients{
			X:        x,
			G:        x.Sub(2, 2),
			Rows:     engine.Rows(2),
			Stats:    stats,
			StatRows: engine.Rows(2),
			Masks:    make([]noise.Key, 2),
			Batches:  [][]int32{few, few[:3]},
			Loss:     make([]float32, 2),
		},
		engine.Candidates{
			Theta:      x.Sub(0, 1),
			Sigma:      0.01,
			Antithetic: true,
			IDs:        ids(4),
			Batches:    [][]int32{few},
			Fitness:    make([]float32, 4),
		}),
		e.Wait(c.Context()))
}
