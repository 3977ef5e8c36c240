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

// benchTensor measures training in float32 and in each arithmetic of the tensor cores. It does nothing on a device
// without tensor cores.
func benchTensor(c *cobra.Command, d host.Device, report func(measurement)) error {
	if len(d.Arithmetics()) == 0 {
		return nil
	}
	for _, arithmetic := range append([]string{""}, d.Arithmetics()...) {
		d := d.With(arithmetic)
		reportNamed := func(m measurement) {
			m.Name = cmp.Or(arithmetic, "f32") + ": " + m.Name
			report(m)
		}
		for _, t := range []struct {
			model          string
			batch, members int
			replicas       bool
		}{{"mlp", 128, 256, true}, {"allcnn", 512, 1, false}} {
			if err := benchGradients(c, d, reportNamed, t.model, t.batch, t.members, t.replicas); err != nil {
				return fmt.Errorf("%s: %w", t.model, err)
			}
		}
		if err := benchPairs(c, d, reportNamed, "full", engine.Noise{}); err != nil {
			return err
		}
	}
	return nil
}

// benchToolkit runs programs of NVIDIA's toolkit, if installed, on the kernels of a card: ptxas reports the registers
// and stack that they use, and compute-sanitizer the invalid accesses and races of a small run.
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

// assemblerBound is the timeout of ptxas for all kernels, sanitizerBound that of each tool of compute-sanitizer. Their
// sum is below the bound of the stage, so that the stage can report which of them did not finish.
const (
	assemblerBound = 10 * time.Second
	sanitizerBound = 20 * time.Second
)

// benchAssembler assembles all kernels with ptxas. It fails if ptxas rejects a kernel, which no card could load, or if
// registers spill.
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
		report(notMeasured("registers", "registers", fmt.Sprintf("ptxas not finished after %s", assemblerBound)))
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
			Note:  fmt.Sprintf("largest of %d kernels, in %s", a.Kernels, a.Of),
		})
		if a.Stack > 0 {
			report(measurement{
				Name:  "stack, " + a.Source,
				Value: float64(a.Stack),
				Unit:  "bytes",
				Note:  "largest stack of a work item, in " + a.StackOf,
			})
		}
		if len(a.Spills) > 0 {
			return fmt.Errorf("registers spill: %s", strings.Join(a.Spills, ", "))
		}
	}
	return nil
}

// benchSanitizer runs the stage tiny under each tool of compute-sanitizer, and fails if one finds a fault.
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
			report(notMeasured("compute-sanitizer "+tool, "faults", fmt.Sprintf("not finished after %s", sanitizerBound)))
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
			return fmt.Errorf("compute-sanitizer found %d faults: for details run it with --tool %s on "+
				"brood bench gpu --stage 'tiny %s'", n, tool, device)
		}
	}
	return nil
}

// benchTiny computes gradients and candidates of two small nets in each arithmetic of a device.
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
	e, net, set, err := openOnDevice(d, model, 8)
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
