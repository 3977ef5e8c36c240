//go:build unix

package program

import (
	"bufio"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"brood/models/engine"
	"brood/models/enginetest"
	"brood/models/longtest"
	"brood/models/noise"
)

var torchPython = sync.OnceValue(func() string { return enginetest.Python("torch") })

// torchNet returns the command of a net of testdata/nets.py; it skips where torch is missing.
func torchNet(t testing.TB, words ...string) []string {
	t.Helper()
	if torchPython() == "" {
		t.Skip("no python3 here has torch")
	}
	script, err := filepath.Abs("testdata/nets.py")
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{torchPython(), script}, words...)
}

// Convolutions, batch-norm, dropout and embeddings of torch pass all checks.
func TestTorch(t *testing.T) {
	longtest.Need(t, longtest.Arithmetic, "torch takes seconds to start")
	for net, want := range map[string]struct{ params, stats int }{
		"lenet":    {431080, 0},
		"resnet20": {269722, 1376},
		"gpt":      {351136, 0},
		"spectral": {7850, 10 + 784 + 1},
	} {
		t.Run(net, func(t *testing.T) {
			p, err := Open(t.Context(), torchNet(t, net, "steps", "candidates", optimiserOf(net)), "")
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			m, err := p.Model()
			if err != nil || m.Layout.Params != want.params || m.Layout.Stats != want.stats {
				t.Errorf("%d parameters and %d statistics, want %+v: %v", m.Layout.Params, m.Layout.Stats, want, err)
			}
			err = Check(t.Context(), p, func(f Finding) {
				t.Logf("%s %s", f.What, f.Note)
				if f.Err != nil {
					t.Errorf("%s: %v", f.What, f.Err)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Plain functions index arrays of numpy by their samples, and pass all checks.
func TestNumpyFunctions(t *testing.T) {
	python := enginetest.Python("numpy")
	if python == "" {
		t.Skip("no python3 here has numpy")
	}
	p, err := Open(t.Context(), []string{python, "testdata/functions.py"}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	err = Check(t.Context(), p, func(f Finding) {
		if f.Err != nil {
			t.Errorf("%s: %v", f.What, f.Err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// optimiserOf returns the optimiser that a net of testdata/nets.py brings.
func optimiserOf(net string) string {
	if net == "lenet" {
		return "odd" // with a scaler
	}
	return "radam"
}

// The state of an optimiser has one size.
func TestTorchStateGrows(t *testing.T) {
	longtest.Need(t, longtest.Arithmetic, "torch takes seconds to start")
	p, err := Open(t.Context(), torchNet(t, "lenet", "odd", "grows"), "")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	e := engineOf(t, p, 1)
	x, err := e.Alloc(1, 431080)
	if err != nil {
		t.Fatal(err)
	}
	for step := range 5 {
		err = e.Do(t.Context(), engine.Steps{Optimiser: engine.Program, X: x, Rows: engine.Rows(1),
			State: engine.NewHost(1, e.model.Layout.State, engine.U64), Loss: make([]float32, 1),
			Entries: []engine.RowSteps{{Batches: slices.Repeat([][]int32{{1, 2}}, step+1), Masks: make([]noise.Key, step+1)}}})
		if want := "changes its size or form, at .0.state.0.more"; (step == 4) != (err != nil &&
			strings.Contains(err.Error(), want)) {
			t.Errorf("%d steps: the error is %v", step+1, err)
		}
	}
}

// A buffer that training changes makes the check fail.
func TestTorchBuffers(t *testing.T) {
	longtest.Need(t, longtest.Arithmetic, "torch takes seconds to start")
	p, err := Open(t.Context(), torchNet(t, "spectral", "two"), "")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	err = Check(t.Context(), p, func(Finding) {})
	if want := "buffer fc.parametrizations.weight.0._v changes"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v, want %q", err, want)
	}
}

// Samples of a data set are the same whether the program reads them itself or its worker processes read them ahead.
func TestTorchWorkers(t *testing.T) {
	longtest.Need(t, longtest.Arithmetic, "torch takes seconds to start")
	var want []float32
	var losses []float64
	for _, words := range [][]string{{"shifted", "steps"}, {"shifted", "steps", "workers"}} {
		p, err := Open(t.Context(), torchNet(t, words...), "")
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		q, err := p.take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m, _ := p.Model()
		x, first := make([]float32, m.Layout.Params), make([]float32, m.Layout.Params)
		ids := make([]int32, 250)
		for i := range ids {
			ids[i] = int32(2 * i)
		}
		steps := &optimiserSteps{optimiser: "sgd", keys: []uint64{1, 2, 3}, eta: .01, mu: .9}
		batches := [][]int32{ids[:40], ids[40:80], ids[80:120]}
		later := engine.Draw{Batch: batches[1], Mask: noise.Key{Seed: 4}}
		var scores []float64
		for _, request := range []task{
			{kind: kindInit, key: 3, outParams: x},
			{kind: kindSteps, batches: batches, steps: steps, params: x, first: first, outParams: x},
			{kind: kindEvaluate, key: 4, batches: [][]int32{ids}, params: x},
			{kind: kindGradient, key: 5, batches: batches[:1], next: &later, params: x},
			{kind: kindGradient, key: key64(later.Mask), batches: batches[1:2], params: x, outGrad: first},
		} {
			var r result
			if err := q.do(t.Context(), request, &r); err != nil {
				t.Fatal(err)
			}
			scores = append(scores, r.loss)
		}
		x = append(x, first...)
		if want == nil {
			want, losses = x, scores
		}
		if !slices.Equal(x, want) || !slices.Equal(scores, losses) {
			t.Errorf("%v: losses %v, want %v, or other parameters", words, scores, losses)
		}
		q.shutdown()
	}
}

// BenchmarkTorch compares steps of SGD with momentum, where the program computes the gradient, all steps, or all steps
// by its own optimiser, with the same steps by torch alone in one process. The variants take turns, 32 steps each; the
// medians are reported. Steps are small, since a loss near 0 has denormal gradients, which are slow.
func BenchmarkTorch(b *testing.B) {
	for net, size := range map[string]int{"lenet": 128, "resnet20": 128, "gpt": 16} {
		b.Run(net+"/gradient", func(b *testing.B) { benchTorch(b, net, size, "") })
		b.Run(net+"/steps", func(b *testing.B) { benchTorch(b, net, size, "steps") })
		b.Run(net+"/optimiser", func(b *testing.B) { benchTorch(b, net, size, "optimiser") })
	}
}

func benchTorch(b *testing.B, net string, size int, how string) {
	const steps = 32
	plain := exec.Command(torchNet(b, "plain")[0], torchNet(b, "plain", net)[1:]...)
	in, err := plain.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := plain.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := plain.Start(); err != nil {
		b.Fatal(err)
	}
	defer plain.Wait()
	defer in.Close()
	lines := bufio.NewScanner(out)
	alone := func() float64 {
		fmt.Fprintln(in, steps)
		lines.Scan()
		s, err := strconv.ParseFloat(strings.TrimSpace(lines.Text()), 64)
		if err != nil {
			b.Fatal(err)
		}
		return s
	}
	p, err := Open(b.Context(), torchNet(b, net, how), "")
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	e, err := p.Engine(1)
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	m, _ := p.Model()
	var mats [3]engine.Mat // parameters, momentum, gradient
	for i := range mats {
		if mats[i], err = e.Alloc(1, m.Layout.Params); err != nil {
			b.Fatal(err)
		}
	}
	stats, err := e.Alloc(1, m.Layout.Stats)
	if err != nil {
		b.Fatal(err)
	}
	x, mom, g := mats[0], mats[1], mats[2]
	hash, state := make([][32]byte, 1), engine.NewHost(1, m.Layout.State, engine.U64)
	batchOf := func(at int) []int32 {
		batch := make([]int32, size)
		for i := range batch {
			batch[i] = int32((at*size + i) % len(p.Data().Train()))
		}
		return batch
	}
	step := func(at int) {
		err := e.Do(b.Context(),
			engine.Gradients{
				X:       x,
				Rows:    engine.Rows(1),
				Batches: [][]int32{batchOf(at)},
				Stats:   stats,
				G:       g,
				Loss:    make([]float32, 1),
			},
			engine.Update{Rows: engine.Rows(1), Prog: []engine.Lin{
				{Dst: mom, Terms: []engine.Term{{C: .9, Src: mom}, {C: 1, Src: g}}},
				{Dst: x, Terms: []engine.Term{{C: 1, Src: x}, {C: -1e-5, Src: g}, {C: -9e-6, Src: mom}}},
			}},
			engine.Digest{X: x, Hash: hash})
		if err != nil {
			b.Fatal(err)
		}
	}
	first, fresh := make([]float32, m.Layout.Params), make([]float32, m.Layout.Stats)
	err = p.Init(b.Context(), noise.Key{}, first, fresh)
	for _, row := range []struct {
		of engine.Mat
		v  []float32
	}{{x, first}, {stats, fresh}} {
		if err == nil {
			err = e.Write(b.Context(), engine.All(row.of), engine.AppendFloats(nil, row.v))
		}
	}
	if err != nil {
		b.Fatal(err)
	}
	all := func() {
		if how == "" {
			for at := range steps {
				step(at)
			}
			return
		}
		entry := engine.RowSteps{Masks: make([]noise.Key, steps), Eta: 1e-5}
		for at := range steps {
			entry.Batches = append(entry.Batches, batchOf(at))
		}
		task := engine.Steps{Optimiser: "sgd", X: x, M: mom, Stats: stats, Rows: engine.Rows(1),
			Entries: []engine.RowSteps{entry}, Mu: .9, Loss: make([]float32, 1)}
		if how == "optimiser" {
			task.Optimiser, task.State = engine.Program, state
		}
		err := e.Do(b.Context(), task, engine.Digest{X: x, Hash: hash})
		if err != nil {
			b.Fatal(err)
		}
	}
	all()
	alone()
	var here, there []float64
	for b.Loop() {
		there = append(there, alone()/steps)
		t0 := time.Now()
		all()
		here = append(here, time.Since(t0).Seconds()/steps)
	}
	slices.Sort(here)
	slices.Sort(there)
	a, c := here[len(here)/2], there[len(there)/2]
	b.ReportMetric(1e3*a, "ms/step")
	b.ReportMetric(1e3*c, "ms/plain-step")
	b.ReportMetric(100*(a/c-1), "%overhead")
	b.ReportMetric(0, "ns/op")
}
