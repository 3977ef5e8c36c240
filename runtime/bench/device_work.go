package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/noise"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/session"
)

// deviceEngine is an engine on a device. The stage that opens it closes it.
type deviceEngine interface {
	engine.Engine
	Close()
}

// openOnDevice opens an engine for a model on a device, with n samples of random bytes. The caller closes the engine.
func openOnDevice(d host.Device, model string, n int) (deviceEngine, *models.Model, *data.Set, error) {
	net, err := models.Load(model)
	if err != nil {
		return nil, nil, nil, err
	}
	set, err := samples(net, n)
	if err != nil {
		return nil, nil, nil, err
	}
	e, err := d.Engine(net, set)
	return e, net, set, err
}

// open measures twice how long an engine takes to open: compiling the kernels and the self-test of single
// operations.
func (b DeviceSuite) open(ctx context.Context, d host.Device) error {
	for _, name := range []string{"opened", "opened again"} {
		began := time.Now()
		e, _, _, err := openOnDevice(d, "mlp", 256)
		if err != nil {
			return err
		}
		e.Close()
		b.Report(Figure{
			Name:  name,
			Value: time.Since(began).Seconds(),
			Unit:  "s",
			Note:  "kernels compiled, self-test passed",
		})
	}
	return nil
}

// hashes trains 20 rounds on the processor and on the device, and fails if the final hashes differ.
func (b DeviceSuite) hashes(ctx context.Context, d host.Device) error {
	dir, err := os.MkdirTemp("", "brood-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, quiet := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM) // an interrupted stage leaves no files
	defer quiet()
	for _, alg := range []string{"dp-sgd", "parle", "openai-es"} {
		var hashes [2]string
		var seconds [2]float64
		for i, on := range []string{"cpu", d.Name} {
			o := host.Options{
				Algorithm: alg,
				Model:     "mlp-small",
				Data:      "glyphs",
				Members:   4,
				Workers:   1,
				Seed:      1,
				Device:    on,
				Limit:     event.Limit{Rounds: 20},
			}
			last, busy, err := train(ctx, filepath.Join(dir, alg+fmt.Sprint(i)), o)
			if err != nil {
				return fmt.Errorf("%s on %s: %w", alg, on, err)
			}
			hashes[i], seconds[i] = strings.TrimPrefix(last.Hash, "blake3:"), busy
		}
		if hashes[0] != hashes[1] {
			return fmt.Errorf("%s: the hash after 20 rounds is %.8s on the processor and %.8s on the device", alg,
				hashes[0], hashes[1])
		}
		b.Report(Figure{
			Name:  alg + ", 20 rounds",
			Value: seconds[1],
			Unit:  "s",
			Note:  fmt.Sprintf("%.3g s on the processor; both end with %.8s", seconds[0], hashes[0]),
		})
	}
	return nil
}

// memory measures launches, and copies of 64 MiB.
func (b DeviceSuite) memory(ctx context.Context, d host.Device) error {
	e, _, _, err := openOnDevice(d, "mlp-small", 32)
	if err != nil {
		return err
	}
	defer e.Close()
	const n, launches = 16 << 20, 1000
	x, err := e.Alloc(2, n)
	if err != nil {
		return err
	}
	p := make([]byte, 4*n)
	one := engine.Span{Mat: x, Rows: 1, Hi: 1}
	for _, s := range []struct {
		name, unit string
		work       float64
		f          func() error
	}{
		{"launches", "/s", launches, func() error {
			for range launches {
				if err := e.Do(ctx, engine.Fill{Dst: one, Value: 1}); err != nil {
					return err
				}
			}
			return e.Wait(ctx)
		}},
		{"bytes to the device", "GB/s", 4e-9 * n, func() error {
			return errors.Join(e.Write(ctx, engine.RowOf(x, 0), p), e.Wait(ctx))
		}},
		{"bytes from the device", "GB/s", 4e-9 * n, func() error { return e.Read(ctx, p, engine.RowOf(x, 0)) }},
		{"copy on the device, both ways", "GB/s", 8e-9 * n, func() error {
			return errors.Join(e.Do(ctx, engine.Copy{Dst: engine.RowOf(x, 1), Src: engine.RowOf(x, 0)}),
				e.Wait(ctx))
		}},
	} {
		if err := b.rate(ctx, s.name, s.unit, s.work, s.f); err != nil {
			return err
		}
	}
	return nil
}

// rate reports the rate of f in units per second. work is the number of units in a call.
func (b DeviceSuite) rate(ctx context.Context, name, unit string, work float64, f func() error) error {
	rate, err := fastest(ctx, b.Each, f)
	if err == nil {
		b.Report(Figure{Name: name, Value: rate * work, Unit: unit})
	}
	return err
}

// tooLong is the time of a first run above which a task is not run again.
const tooLong = 5 * time.Second

// filled measures a task with enough entries to fill the device: it doubles their number, up to most, until the
// task takes more than 50 ms. each is the work of an entry in the unit. If the first run, which includes compilation,
// takes longer than tooLong, its time is the figure.
func (b DeviceSuite) filled(ctx context.Context, name, unit string, most int, each float64,
	do func(entries int) error) error {
	for n := 1; ; n *= 2 {
		name := fmt.Sprintf("%s, %d at once", name, n)
		began := time.Now()
		if err := do(n); err != nil { // warm-up: compiles kernels, grows buffers
			return err
		}
		if took := time.Since(began); took > tooLong {
			b.Report(Figure{Name: name, Value: float64(n) * each / took.Seconds(), Unit: unit, Note: "the first run"})
			return nil
		}
		began = time.Now()
		if err := do(n); err != nil {
			return err
		}
		if 2*n > most || time.Since(began) > 50*time.Millisecond {
			return b.rate(ctx, name, unit, float64(n)*each, func() error { return do(n) })
		}
	}
}

// noise measures the perturbation of parameters and the weighted sum of noise.
func (b DeviceSuite) noise(ctx context.Context, d host.Device) error {
	e, net, _, err := openOnDevice(d, "mlp", 256)
	if err != nil {
		return err
	}
	defer e.Close()
	const most = 512
	x, err := e.Alloc(most, net.Layout.Params)
	if err != nil {
		return err
	}
	params := float64(net.Layout.Params)
	err = b.filled(ctx, "parameters + sigma * Gaussian", "G/s", most, params*1e-9, func(n int) error {
		task := engine.Perturb{X: x.Sub(0, n), Sigma: make([]float32, n), Keys: make([]noise.Key, n)}
		return errors.Join(e.Do(ctx, task), e.Wait(ctx))
	})
	if err != nil {
		return err
	}
	return b.filled(ctx, "weighted sum of noise", "G/s", 4*most, params*1e-9, func(n int) error {
		task := engine.NoiseSum{Dst: engine.RowOf(x, 0), Weights: make([]float32, n), Antithetic: true, IDs: ids(n)}
		return errors.Join(e.Do(ctx, task), e.Wait(ctx))
	})
}

func ids(n int) []engine.Member {
	out := make([]engine.Member, n)
	for i := range out {
		out[i] = engine.Member(i)
	}
	return out
}

// replicas measures gradients of many replicas at once, and of one replica with a batch that fills the device.
func (b DeviceSuite) replicas(ctx context.Context, d host.Device) error {
	for _, t := range []struct {
		model          string
		batch, members int // the largest values
		replicas       bool
	}{{"mlp", 128, 256, true}, {"lenet", 128, 64, true}, {"allcnn", 512, 1, false}} {
		if err := b.gradients(ctx, d, t.model, t.batch, t.members, t.replicas); err != nil {
			return fmt.Errorf("%s: %w", t.model, err)
		}
	}
	return nil
}

func (b DeviceSuite) gradients(ctx context.Context, d host.Device, model string, batch, members int,
	replicas bool) error {
	e, net, set, err := openOnDevice(d, model, 2*batch)
	if err != nil {
		return err
	}
	defer e.Close()
	var mats [3]engine.Mat // parameters, gradients, statistics
	for i, width := range []int{net.Layout.Params, net.Layout.Params, net.Layout.Stats} {
		if width == 0 {
			continue
		}
		if mats[i], err = e.Alloc(members, width); err != nil {
			return err
		}
	}
	row := make([]float32, net.Layout.Params)
	for i := range members {
		if err := net.Init(1, engine.Member(i), row); err != nil {
			return err
		}
		if err := e.Write(ctx, engine.RowOf(mats[0], engine.Row(i)), engine.AppendFloats(nil, row)); err != nil {
			return err
		}
	}
	gradients := func(n, batch int) error {
		task := engine.Gradients{
			X:     mats[0],
			G:     mats[1],
			Stats: mats[2],
			Rows:  engine.Rows(n),
			Masks: make([]noise.Key, n),
			Loss:  make([]float32, n),
		}
		for i := range n {
			task.Batches = append(task.Batches, set.Train()[i%batch:i%batch+batch])
		}
		return errors.Join(e.Do(ctx, task), e.Wait(ctx))
	}
	if replicas {
		name := fmt.Sprintf("%s, batch %d, replicas", model, batch)
		return b.filled(ctx, name, "samples/s", members, float64(batch),
			func(n int) error { return gradients(n, batch) })
	}
	return b.filled(ctx, model+", a batch of pairs", "samples/s", batch/2, 2,
		func(n int) error { return gradients(1, 2*n) })
}

// candidates measures evaluations of perturbed candidates for each kind of noise.
func (b DeviceSuite) candidates(ctx context.Context, d host.Device) error {
	for _, k := range []struct {
		name  string
		noise engine.Noise
	}{{"full", engine.Noise{}}, {"integer", engine.Noise{Integer: true}}, {"rank 1", engine.Noise{Rank: 1}}} {
		if err := b.pairs(ctx, d, k.name, k.noise); err != nil {
			return err
		}
	}
	return nil
}

func (b DeviceSuite) pairs(ctx context.Context, d host.Device, name string, kind engine.Noise) error {
	e, net, set, err := openOnDevice(d, "mlp", 256)
	if err != nil {
		return err
	}
	defer e.Close()
	theta, err := e.Alloc(1, net.Layout.Params)
	if err != nil {
		return err
	}
	row := make([]float32, net.Layout.Params)
	if err := net.Init(1, 0, row); err != nil {
		return err
	}
	if err := e.Write(ctx, engine.RowOf(theta, 0), engine.AppendFloats(nil, row)); err != nil {
		return err
	}
	return b.filled(ctx, "mlp, batch 256, pairs of "+name+" candidates", "evaluations/s", 2048, 2,
		func(pairs int) error {
			n := 2 * pairs
			task := engine.Candidates{
				Theta:      theta,
				Noise:      kind,
				Sigma:      0.01,
				Antithetic: true,
				IDs:        ids(n),
				Batches:    [][]int32{set.Train()},
				Fitness:    make([]float32, n),
			}
			return errors.Join(e.Do(ctx, task), e.Wait(ctx))
		})
}

// train runs a job in this process. It returns the last commit and the sum of the round times in seconds.
func train(ctx context.Context, dir string, o host.Options) (last event.Commit, seconds float64, err error) {
	j, err := host.Prepare(o)
	if err != nil {
		return last, 0, err
	}
	sess, err := session.Create(dir)
	if err != nil {
		return last, 0, err
	}
	var busy int64
	run, err := host.Start(j, sess, nil, func(r event.Record) {
		if r.Commit != nil {
			last, busy = *r.Commit, busy+r.Commit.Nanos
		}
	})
	if err != nil {
		return last, 0, err
	}
	_, err = run.Train(ctx)
	return last, float64(busy) / 1e9, errors.Join(err, run.Close())
}
