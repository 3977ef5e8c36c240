package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"brood/models/engine"
	"brood/models/noise"
	"brood/runtime/host"
)

// tensor measures training in float32 and in each arithmetic of the tensor cores. It does nothing on a device
// without tensor cores.
func (b DeviceSuite) tensor(ctx context.Context, d host.Device) error {
	if len(d.Arithmetics()) == 0 {
		return nil
	}
	for _, arithmetic := range append([]string{""}, d.Arithmetics()...) {
		d := d.With(arithmetic)
		named := b
		named.Report = func(m Figure) {
			m.Name = cmp.Or(arithmetic, "f32") + ": " + m.Name
			b.Report(m)
		}
		for _, t := range []struct {
			model          string
			batch, members int
			replicas       bool
		}{{"mlp", 128, 256, true}, {"allcnn", 512, 1, false}} {
			if err := named.gradients(ctx, d, t.model, t.batch, t.members, t.replicas); err != nil {
				return fmt.Errorf("%s: %w", t.model, err)
			}
		}
		if err := named.pairs(ctx, d, "full", engine.Noise{}); err != nil {
			return err
		}
	}
	return nil
}

// toolkit runs programs of NVIDIA's toolkit, if installed, on the kernels of a card: ptxas reports the registers
// and stack that they use, and compute-sanitizer the invalid accesses and races of a small run.
func (b DeviceSuite) toolkit(ctx context.Context, d host.Device) error {
	if len(d.Arithmetics()) == 0 {
		return nil
	}
	if err := b.assemble(ctx, d); err != nil {
		return err
	}
	sanitizer, err := host.Sanitizer()
	if err != nil {
		b.Report(notMeasured("compute-sanitizer", "faults", "not run: "+err.Error()))
		return nil
	}
	return b.sanitize(ctx, sanitizer, d.Name)
}

// assemblerBound is the timeout of ptxas for all kernels, sanitizerBound that of each tool of compute-sanitizer. Their
// sum is below the bound of the stage, so that the stage can report which of them did not finish.
const (
	assemblerBound = 10 * time.Second
	sanitizerBound = 20 * time.Second
)

// assemble assembles all kernels with ptxas. It fails if ptxas rejects a kernel, which no card could load, or if
// registers spill.
func (b DeviceSuite) assemble(ctx context.Context, d host.Device) error {
	ptxas, err := host.Assembler()
	if err != nil {
		b.Report(notMeasured("registers", "registers", "not known: "+err.Error()))
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, assemblerBound)
	defer cancel()
	all, err := d.Assemble(ctx, ptxas)
	if ctx.Err() != nil {
		b.Report(notMeasured("registers", "registers", fmt.Sprintf("ptxas not finished after %s", assemblerBound)))
		return nil
	}
	if err != nil {
		return err
	}
	for _, a := range all {
		b.Report(Figure{
			Name:  "registers, " + a.Source,
			Value: float64(a.Registers),
			Unit:  "registers",
			Note:  fmt.Sprintf("largest of %d kernels, in %s", a.Kernels, a.Of),
		})
		if a.Stack > 0 {
			b.Report(Figure{
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

// sanitize runs the stage tiny under each tool of compute-sanitizer, and fails if one finds a fault.
func (b DeviceSuite) sanitize(ctx context.Context, sanitizer, device string) error {
	stage := b.Command("tiny " + device)
	for _, tool := range []string{"memcheck", "racecheck"} {
		limited, cancel := context.WithTimeout(ctx, sanitizerBound)
		n, err := host.Sanitize(limited, sanitizer, tool, stage...)
		late := limited.Err() != nil
		cancel()
		if late {
			b.Report(notMeasured("compute-sanitizer "+tool, "faults", fmt.Sprintf("not finished after %s", sanitizerBound)))
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", tool, err)
		}
		b.Report(Figure{
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

// tiny computes gradients and candidates of two small nets in each arithmetic of a device.
func (b DeviceSuite) tiny(ctx context.Context, d host.Device) error {
	for _, arithmetic := range append([]string{""}, d.Arithmetics()...) {
		began := time.Now()
		for _, model := range []string{"mlp-small", "lenet"} {
			if err := tinyTasks(ctx, d.With(arithmetic), model); err != nil {
				return fmt.Errorf("%s: %w", model, err)
			}
		}
		b.Report(Figure{
			Name:  cmp.Or(arithmetic, "f32"),
			Value: time.Since(began).Seconds(),
			Unit:  "s",
			Note:  "engines, gradients and candidates of two small nets",
		})
	}
	return nil
}

func tinyTasks(ctx context.Context, d host.Device, model string) error {
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
	return errors.Join(e.Do(ctx,
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
		e.Wait(ctx))
}
