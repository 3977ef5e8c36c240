//go:build unix

package program

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"brood/models/engine"
	"brood/models/noise"
	"brood/models/program/programtest"
)

func TestMain(m *testing.M) {
	programtest.Main()
	os.Exit(m.Run())
}

func opened(t *testing.T, faults string) *Program {
	t.Helper()
	t.Setenv(programtest.Variable, faults)
	p, err := Open(t.Context(), programtest.Command(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func engineOf(t *testing.T, p *Program, threads int) *Engine {
	t.Helper()
	e, err := p.Engine(threads)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// rows returns n rows of initial values and their copy in the memory of the engine.
func rows(t *testing.T, p *Program, e *Engine, n int) (engine.Host, engine.Mat) {
	t.Helper()
	h := engine.NewHost(n, programtest.Params, engine.F32)
	for i := range n {
		key := noise.Key{Seed: 7, Purpose: noise.Init, Member: uint32(i)}
		if err := p.Init(t.Context(), key, h.Row(engine.Row(i)), nil); err != nil {
			t.Fatal(err)
		}
	}
	m, err := engine.Upload(t.Context(), e, h)
	if err != nil {
		t.Fatal(err)
	}
	return h, m
}

func TestDescription(t *testing.T) {
	p := opened(t, "")
	m, err := p.Model()
	if err != nil || m.Layout.Params != programtest.Params || len(m.Layout.Tensors) != 4 {
		t.Fatalf("model %+v: %v", m, err)
	}
	d := p.Data()
	if len(d.Train()) != programtest.Train || len(d.Validation()) != programtest.Validation ||
		d.Test()[0] != programtest.Train+programtest.Validation || d.Digest() != "formula 1" {
		t.Errorf("%d, %d and %d samples of %s", len(d.Train()), len(d.Validation()), len(d.Test()), d.Digest())
	}
	if text := p.Text(); !strings.Contains(text, "name = 'fc2.weight'") ||
		!strings.Contains(text, "# file program.test blake3:") ||
		strings.Contains(text, "go test") {
		t.Errorf("the session records\n%s", text)
	}
}

// The results of a row equal those of the program alone, for every number of processes.
func TestTasks(t *testing.T) {
	p := opened(t, "")
	batches := [][]int32{{1, 2, 3}, {4, 599}, {5}}
	long := make([]int32, 0, 1200) // several pieces
	for i := range cap(long) {
		long = append(long, int32(i%700))
	}
	for _, threads := range []int{1, 3} {
		e := engineOf(t, p, threads)
		h, x := rows(t, p, e, 3)
		g, err := e.Alloc(3, programtest.Params)
		if err != nil {
			t.Fatal(err)
		}
		order := []engine.Row{2, 0, 1}
		gradients := engine.Gradients{X: x, Rows: order, Batches: batches, G: g, Loss: make([]float32, 3)}
		evaluate := engine.Evaluate{X: x, Rows: engine.Rows(2), Batches: [][]int32{long, batches[0]},
			Loss: make([]float64, 2), Correct: make([]int64, 2), Metrics: make([]float64, 2)}
		if err := e.Do(t.Context(), gradients, evaluate); err != nil {
			t.Fatal(err)
		}
		got, err := engine.Download(t.Context(), e, g)
		if err != nil {
			t.Fatal(err)
		}
		want := make([]float32, programtest.Params)
		for i, r := range order {
			loss := programtest.Gradient(h.Row(r), ints(batches[i]), want)
			if !slices.Equal(got.Row(engine.Row(i)), want) || gradients.Loss[i] != float32(loss) {
				t.Errorf("%d threads: entry %d has loss %v, want %v, or another gradient", threads, i, gradients.Loss[i], loss)
			}
		}
		loss, correct, margin := 0.0, 0, 0.0
		for part := range slices.Chunk(long, pieceSize) {
			l, c, m := programtest.Evaluate(h.Row(0), ints(part))
			loss, correct, margin = loss+l, correct+c, margin+m
		}
		if evaluate.Loss[0] != loss || evaluate.Correct[0] != int64(correct) || evaluate.Metrics[0] != margin {
			t.Errorf("%d threads: %v, %d, %v; want %v, %d, %v", threads, evaluate.Loss[0], evaluate.Correct[0],
				evaluate.Metrics[0], loss, correct, margin)
		}
		if notes := e.Notes(); len(notes) > 0 {
			t.Errorf("notes %v", notes)
		}
		e.Close()
	}
}

func ints(ids []int32) (out []int) {
	for _, id := range ids {
		out = append(out, int(id))
	}
	return out
}

// No piece of an evaluation has one sample, which batch-norm cannot normalise, unless the batch has one sample.
func TestPieces(t *testing.T) {
	p := opened(t, "")
	e := engineOf(t, p, 1)
	for _, n := range []int{1, 2, pieceSize, pieceSize + 1, 2*pieceSize + 1} {
		batch := make([]int32, n)
		for i := range batch {
			batch[i] = int32(i)
		}
		var joined []int32
		for _, piece := range e.pieces([][]int32{batch}, 1) {
			if len(piece.samples) > pieceSize || len(piece.samples) == 1 && n > 1 {
				t.Errorf("%d samples: a piece of %d", n, len(piece.samples))
			}
			joined = append(joined, piece.samples...)
		}
		if !slices.Equal(joined, batch) {
			t.Errorf("%d samples: the pieces have %d", n, len(joined))
		}
	}
}

// Candidates are evaluated at the centre plus noise, which brood or the program adds. Their fitness is minus the mean
// loss.
func TestCandidates(t *testing.T) {
	long := make([]int32, 600) // two pieces
	for i := range long {
		long[i] = int32(i)
	}
	for _, faults := range []string{"", "candidates"} {
		for _, threads := range []int{1, 3} {
			p := opened(t, faults)
			e := engineOf(t, p, threads)
			h, theta := rows(t, p, e, 2)
			for round := range uint64(2) { // each with its centre
				c := engine.Candidates{
					Theta:      theta.Sub(engine.Row(round), 1),
					Sigma:      .1,
					Key:        noise.Key{Seed: 3, Purpose: noise.Candidate, Round: 1<<33 + round},
					Antithetic: true,
					IDs:        []engine.Member{0, 1, 3, 8, 9},
					Batches:    [][]int32{long},
					Fitness:    make([]float32, 5),
					Metrics:    make([]float64, 5),
				}
				if err := e.Do(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				for i, id := range c.IDs {
					x := slices.Clone(h.Row(engine.Row(round)))
					key, sign := engine.Signed(c.Key, true, id)
					perturbed(x, key, sign*c.Sigma)
					loss, margin := 0.0, 0.0
					for part := range slices.Chunk(long, pieceSize) {
						l, _, m := programtest.Evaluate(x, ints(part))
						loss, margin = loss+l, margin+m
					}
					if c.Fitness[i] != float32(-loss/600) || c.Metrics[i] != margin/600 {
						t.Errorf("%q, %d threads, round %d, candidate %d: %v and %v, want %v and %v", faults, threads, round, id,
							c.Fitness[i], c.Metrics[i], -loss/600, margin/600)
					}
				}
			}
			e.Close()
		}
	}
}

// perturbed adds step times the noise of key to the parameters of the test program.
func perturbed(x []float32, key noise.Key, step float32) {
	lo := 0
	for stream, shape := range [][2]int{
		{programtest.Hidden, programtest.Inputs},
		{1, programtest.Hidden},
		{programtest.Outputs, programtest.Hidden},
		{1, programtest.Outputs},
	} {
		key.Stream = uint32(stream)
		n := shape[0] * shape[1]
		key.Each(0, n, shape[1], func(at int, eps []float32) {
			for i, v := range eps {
				x[lo+at+i] += float32(step * v)
			}
		})
		lo += n
	}
}

// one computes a gradient with a fresh engine and returns its error.
func one(ctx context.Context, t *testing.T, p *Program) error {
	t.Helper()
	e := engineOf(t, p, 1)
	x, err := e.Alloc(1, programtest.Params)
	if err != nil {
		t.Fatal(err)
	}
	g, err := e.Alloc(1, programtest.Params)
	if err != nil {
		t.Fatal(err)
	}
	return e.Do(ctx, engine.Gradients{X: x, Rows: engine.Rows(1), Batches: [][]int32{{1}}, G: g, Loss: make([]float32, 1)})
}

func TestFaults(t *testing.T) {
	defer func(before time.Duration) { startTimeout = before }(startTimeout)
	startTimeout = 10 * time.Second
	for faults, want := range map[string]string{
		"refuse": "it ended without an answer: exit status 1; stderr: Traceback: no module named nowhere",
		"print":  "does it print text to its standard output?",
		"die=0":  "it ended without an answer: exit status 3; stderr: ValueError: the tensors do not match",
		"short":  "its answer has 8 bytes, want 32: an id",
		"hang=0": "it gave no answer within 5s",
		"shrink": "read from the memory shared with the program, which it has shortened",
	} {
		t.Run(faults, func(t *testing.T) {
			t.Parallel()
			command := []string{"env", programtest.Variable + "=" + faults, programtest.Command()[0]}
			p, err := Open(t.Context(), command, "")
			if err == nil {
				defer p.Close()
				err = one(t.Context(), t, p)
			}
			if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "the program env ") {
				t.Errorf("the error is %v, want %q", err, want)
			}
		})
	}
}

// A process whose description differs from the description of the first one is not used.
func TestOtherDescription(t *testing.T) {
	file := filepath.Join(t.TempDir(), "changed")
	p := opened(t, "other="+file)
	p.Close()
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("train = %d", programtest.Train)
	if err := one(t.Context(), t, p); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v, want %q", err, want)
	}
}

// TestState: the state of a program's own optimiser makes the round trip through any process; the check finds a program
// that keeps none.
func TestState(t *testing.T) {
	for faults, want := range map[string]string{"steps state": "", "steps state forgets": "the state must hold all"} {
		p := opened(t, faults)
		c := &checker{ctx: t.Context(), p: p, x: make([]float32, programtest.Params), batch: []int32{1, 2, 3}}
		for _, q := range []**process{&c.a, &c.b} {
			var err error
			if *q, err = p.take(t.Context()); err != nil {
				t.Fatal(err)
			}
			defer (*q).shutdown()
		}
		if _, err := c.initial(); err != nil {
			t.Fatal(err)
		}
		note, err := c.state()
		if want == "" && (err != nil || note != fmt.Sprint(programtest.StateBytes, " bytes")) ||
			want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %q and %v, want %q", faults, note, err, want)
		}
	}
}

func TestVaries(t *testing.T) {
	p := opened(t, "wander")
	e := engineOf(t, p, 1)
	_, x := rows(t, p, e, 1)
	g, err := e.Alloc(1, programtest.Params)
	if err != nil {
		t.Fatal(err)
	}
	task := engine.Gradients{X: x, Rows: engine.Rows(1), Batches: [][]int32{{1}}, G: g, Loss: make([]float32, 1)}
	if err := e.Do(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	notes := e.Notes()
	if len(notes) != 1 || notes[0].Kind != engine.NoteVaries || !strings.Contains(notes[0].Text, "at parameter 0") {
		t.Errorf("notes %v", notes)
	}
}

// A loss that overflows makes the fitness missing, not infinite.
func TestParseDone(t *testing.T) {
	var r result
	body := order.AppendUint64(nil, 4)
	body = order.AppendUint64(body, math.Float64bits(2.5))
	body = order.AppendUint64(body, 3)
	if err := parseDone(body, 4, 3, &r); err != nil || r.loss != 2.5 || r.correct != 3 {
		t.Errorf("%+v: %v", r, err)
	}
	if err := parseDone(body, 5, 3, &r); err == nil {
		t.Error("the answer to another task is taken")
	}
	if err := parseDone(body, 4, 2, &r); err == nil {
		t.Error("3 of 2 samples are right")
	}
}

func TestRefusedDescriptions(t *testing.T) {
	const good = `{"name":"n","parameters":[{"name":"w","shape":[2]}],"train":3,"data":"d","score":"loss",` +
		`"library":"l","device":"cpu"}`
	if _, err := parseDescription([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for change, want := range map[string]string{
		`"name":"n" -> "name":"n\u001b"`:                             "the name",
		`"score":"loss" -> "score":"fitness"`:                        "the score",
		`"train":3 -> "train":0`:                                     "0 training",
		`"train":3 -> "train":3,"epochs":2`:                          "epochs",
		`[2] -> [0]`:                                                 "sizes above zero",
		`[2] -> [2147483647,2147483647]`:                             "elements in all",
		`[{"name":"w","shape":[2]}] -> []`:                           "no parameters",
		`"device":"cpu" -> "device":"c/u"`:                           "leave the / out",
		`"train":3 -> "train":3,"timeout":-1`:                        "a timeout of -1 s",
		`"train":3 -> "train":3,"metrics":[""]`:                      "its metric 1",
		`"train":3 -> "train":3,"metrics":["a","a"]`:                 "have one name",
		`"train":3 -> "train":200000000,"test":200000000`:            "samples: give at most 268435456 in all",
		`"train":3 -> "train":3,"processes":-1`:                      "-1 processes",
		`"train":3 -> "train":3,"steps":true,"state":-1`:             "a state of -1 bytes",
		`"train":3 -> "train":3,"steps":true,"state":99e15`:          "cannot unmarshal number 99e15",
		`"train":3 -> "train":3,"steps":true,"state":99999999999999`: "give 0 to 68719476736",
		`"train":3 -> "train":3,"state":8`:                           "takes no steps",
		`"shape":[2]} -> "shape":[2]},{"name":"w","shape":[1]}`:      "shares it with another",
	} {
		from, to, _ := strings.Cut(change, " -> ")
		if _, err := parseDescription([]byte(strings.Replace(good, from, to, 1))); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %q", change, err, want)
		}
	}
}

func FuzzAnswers(f *testing.F) {
	f.Add([]byte(`{"name":"n","parameters":[{"name":"w","shape":[2]}],"train":3,"data":"d","score":"loss"}`))
	f.Add(make([]byte, 24))
	f.Fuzz(func(t *testing.T, p []byte) {
		if d, err := parseDescription(p); err == nil {
			if _, err := d.text(); err != nil {
				t.Fatal(err)
			}
		}
		_ = parseDone(p, 0, 1, &result{metrics: make([]float64, 1)})
	})
}
