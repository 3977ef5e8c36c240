package objective

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"brood/models"
	"brood/models/arith"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/native"
)

// Kernels names what computes: candidates and updates hold the arithmetic, fitness is the objective's.
const Kernels = "objective/" + arith.Name

// leastRestarts is the number of restarts that the first note is of; each further one is of twice as many. A note tells
// of the last recentEvaluations apart.
const (
	leastRestarts     = 4
	recentEvaluations = 100
)

// checkEvery is how many tasks that evaluate lie between two in which an evaluation is made twice.
const checkEvery = 64

// Engine runs tasks for one objective. It is used from one goroutine, and closed by whoever made it.
type Engine struct {
	ram.Memory
	o       Objective
	call    Measured // nil where a program is asked
	metrics []string // that are measured beside the fitness
	known   bool     // they are, since a first program has declared them
	model   *models.Model
	limit   time.Duration
	vector  *native.Vector
	bounds  engine.Bounds
	low     []float32 // of each parameter; nil where none is bounded
	high    []float32
	lanes   []*lane
	tasks   int // that evaluated
	mu      sync.Mutex
	missing int           // results since Notes was asked
	why     string        // of the first of them
	notes   []engine.Note // of other things
	varies  bool          // it was said
	odder   bool          // likewise, of a metric that is no finite number

	evaluations int    // that were answered or given up
	restarts    int    // of programs
	recent      []int  // evaluations before each restart within the last recentEvaluations
	ended       string // why the last of them was needed
	told        int    // restarts at the last note
	tellAt      int    // restarts at which the next note is due
}

// New greets a first program, so that what cannot be started is refused here. Fewer than one thread counts as one.
func New(o Objective, threads int) (*Engine, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	m, err := o.Spec.Model()
	if err != nil {
		return nil, err
	}
	n := o.Processes(threads)
	v, err := native.New(m.Layout, n)
	if err != nil {
		return nil, err
	}
	e := &Engine{o: o, tellAt: leastRestarts, call: o.function(), metrics: o.Metrics, model: m, vector: v, bounds: m.Bounds(o.Spec.Data())}
	if e.limit, err = o.Spec.timeout(); err != nil {
		return nil, err
	}
	e.bound()
	for i := range n {
		e.lanes = append(e.lanes, &lane{id: i, e: e})
	}
	if err := e.lanes[0].ready(context.Background()); err != nil {
		return nil, err
	}
	if p := e.lanes[0].p; p != nil {
		e.metrics = p.greeted.metrics
	}
	e.known = true
	return e, nil
}

// Metrics are the names of what is measured beside the fitness; read-only.
func (e *Engine) Metrics() []string { return e.metrics }

// bound spreads the bounds of tensors over their parameters.
func (e *Engine) bound() {
	for i, t := range e.model.Layout.Tensors {
		p := &e.o.Spec.Params[i]
		if p.Low == nil && p.High == nil {
			continue
		}
		if e.low == nil {
			e.low = slices.Repeat([]float32{float32(math.Inf(-1))}, e.model.Layout.Params)
			e.high = slices.Repeat([]float32{float32(math.Inf(1))}, e.model.Layout.Params)
		}
		low, high := p.bounds()
		for j := t.Lo; j < t.Lo+t.Len; j++ {
			e.low[j], e.high[j] = low, high
		}
	}
}

// Model is the parameters; read-only.
func (e *Engine) Model() *models.Model { return e.model }

// Data is the seeds.
func (e *Engine) Data() *data.Set { return e.o.Spec.Data() }

// Kernels implements the engine of a run.
func (e *Engine) Kernels() string { return Kernels }

// Room predicts the memory of vector tasks and of batches on their way, in bytes. What programs take is theirs.
func (e *Engine) Room(w engine.Work) int64 {
	rows := int64(e.most(max(w.Candidates*w.Batch, w.Rows*w.Scores)))
	return e.vector.Room(w) + int64(len(e.lanes))*rows*2*4*int64(e.model.Layout.Params)
}

// Close lets all programs end.
func (e *Engine) Close() {
	var wg sync.WaitGroup
	for _, l := range e.lanes {
		if l.p != nil {
			wg.Go(l.p.leave)
			l.p = nil
		}
	}
	wg.Wait()
}

// Notes are what happened since it was asked last that a person should know.
func (e *Engine) Notes() []engine.Note {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := e.notes
	if e.missing > 0 {
		out = append(out, engine.Note{Kind: engine.NoteMissing, Text: fmt.Sprintf("results that the objective did not give, and that count as the worst: %d; the first: %s", e.missing, e.why)})
	}
	if e.restarts >= e.tellAt {
		out = append(out, engine.Note{Kind: engine.NoteRestarts, Text: e.restartsText()})
		e.told, e.tellAt = e.restarts, leastRestarts
		for e.tellAt <= e.restarts {
			e.tellAt *= 2
		}
	}
	e.missing, e.why, e.notes = 0, "", nil
	return out
}

// Do runs the tasks in order; their outputs are readable when it returns. It stops at the first error.
func (e *Engine) Do(ctx context.Context, tasks ...engine.Task) error {
	for _, t := range tasks {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		switch t := t.(type) {
		case engine.Candidates:
			err = e.candidates(ctx, t)
		case engine.Evaluate:
			err = e.evaluate(ctx, t)
		case engine.Gradients, engine.Statistics:
			err = &engine.UnsupportedError{Task: t}
		default:
			err = e.vector.Do(ctx, t)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) evaluate(ctx context.Context, t engine.Evaluate) error {
	if err := e.bounds.Evaluate(&t); err != nil {
		return err
	}
	x := ram.View(t.X)
	out, err := e.score(ctx, t.Batches, len(t.Rows), t.Metrics, func(_ *lane, i int, dst []float32) error {
		copy(dst, x.Row(t.Rows[i]))
		return nil
	})
	if err != nil {
		return err
	}
	for i, f := range out {
		t.Loss[i], t.Correct[i] = -f, 0
	}
	return nil
}

func (e *Engine) candidates(ctx context.Context, t engine.Candidates) error {
	if err := e.bounds.Candidates(&t); err != nil {
		return err
	}
	out, err := e.score(ctx, t.Batches, len(t.IDs), t.Metrics, func(l *lane, i int, dst []float32) error {
		return e.vector.Candidate(l.id, dst, &t, i)
	})
	if err != nil {
		return err
	}
	for i, f := range out {
		n := float64(len(t.Batches[min(i, len(t.Batches)-1)]))
		for k := range t.Metrics[:min(len(t.Metrics), len(e.metrics))] {
			t.Metrics[i*len(e.metrics)+k] /= n
		}
		f /= n
		if t.Fitness[i] = float32(f); math.IsInf(float64(t.Fitness[i]), 0) {
			e.miss(fmt.Sprintf("its fitness %g is beyond float32", f))
			t.Fitness[i] = float32(math.NaN())
		}
	}
	return nil
}

// unit is one evaluation: of candidate i, under a seed.
type unit struct {
	i    int
	seed int32
}

// score is the sum of the fitness of n candidates over the seeds of their batches, in order; NaN where one is missing.
// Batches has one for all, or one for each. metrics takes sums too, where it has a row for each candidate. fill writes
// the parameters of a candidate.
func (e *Engine) score(ctx context.Context, batches [][]int32, n int, metrics []float64, fill func(l *lane, i int, dst []float32) error) ([]float64, error) {
	wide := len(e.metrics)
	if len(metrics) != 0 && len(metrics) != n*wide {
		return nil, fmt.Errorf("room for %d metrics of %d candidates, want none or %d of each", len(metrics), n, wide)
	}
	var units []unit
	for i := range n {
		for _, s := range batches[min(i, len(batches)-1)] {
			units = append(units, unit{i, s})
		}
	}
	real := len(units)
	if e.tasks++; real > 0 && e.tasks%checkEvery == 1 {
		units = append(units, units[0])
	}
	fitness := make([]float64, len(units))
	w := &work{units: units, fitness: fitness, metrics: make([]float64, wide*len(units)), size: e.most(len(units)), lanes: len(e.lanes), fill: fill}
	w.size = max(1, min(w.size, len(units)/(pieces*len(e.lanes))))
	if err := engine.Each(ctx, e.lanes, len(e.lanes), func(l *lane, _ int) error { return l.run(ctx, w) }); err != nil {
		return nil, err
	}
	if len(units) > real {
		e.compare(fitness[0], fitness[real])
		if math.IsNaN(fitness[real]) { // counted with the one that it repeats
			e.mu.Lock()
			e.missing--
			e.mu.Unlock()
		}
	}
	sum := make([]float64, n)
	for k, u := range units[:real] {
		sum[u.i] += fitness[k]
	}
	clear(metrics)
	if len(metrics) > 0 {
		for k, u := range units[:real] {
			for i, x := range w.metrics[k*wide : (k+1)*wide] {
				metrics[u.i*wide+i] += x
			}
		}
	}
	return sum, nil
}

// most is how many of so many evaluations go in one batch.
func (e *Engine) most(n int) int {
	return max(1, min(n, rowsOf(e.model.Layout.Params)))
}

// compare looks at two results for the same parameters and seed.
func (e *Engine) compare(a, b float64) {
	if a == b || math.IsNaN(a) || math.IsNaN(b) || e.varies {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.varies = true
	e.notes = append(e.notes, engine.Note{Kind: engine.NoteVaries, Text: fmt.Sprintf("the objective gives different fitness for the same parameters and seed, %v and %v: this session cannot verify exactly", a, b)})
}

// answered counts evaluations that were answered or given up.
func (e *Engine) answered(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.evaluations += n
}

// restarted counts a program that has ended and is to be started again.
func (e *Engine) restarted(why error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.restarts, e.ended, e.recent = e.restarts+1, why.Error(), append(e.recentRestarts(), e.evaluations)
}

// recentRestarts drops the restarts before the last recentEvaluations.
func (e *Engine) recentRestarts() []int {
	return slices.DeleteFunc(e.recent, func(at int) bool { return at < e.evaluations-recentEvaluations })
}

// restartsText is the note on restarts.
func (e *Engine) restartsText() string {
	times := func(n int) string {
		if n == 1 {
			return "1 time"
		}
		return fmt.Sprintf("%d times", n)
	}
	last := ""
	if e.recent = e.recentRestarts(); e.evaluations > recentEvaluations {
		last = fmt.Sprintf(", %s in the last %d", times(len(e.recent)), recentEvaluations)
	}
	return fmt.Sprintf("program %s was restarted %s in %d evaluations%s: find out why it ends, as each restart delays its worker; the last time %s",
		strings.Join(e.o.Command, " "), times(e.restarts), e.evaluations, last, e.ended)
}

// Restarts returns how often programs were restarted; ok is false where the objective is a function. Any goroutine may
// call it.
func (e *Engine) Restarts() (n int, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.restarts, e.call == nil
}

// Ending makes the next notes tell of all restarts since the last note on them, however few.
func (e *Engine) Ending() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tellAt = e.told + 1
}

// miss counts a missing result.
func (e *Engine) miss(why string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.missing++; e.why == "" {
		e.why = why
	}
}

// checked is a fitness, or NaN and one more missing where it is not finite. Its metrics are held to the same, and none
// of them is a reason to do without the fitness.
func (e *Engine) checked(f float64, metrics []float64) float64 {
	for k, x := range metrics {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			e.odd(k, x)
			metrics[k] = math.NaN()
		}
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		e.miss(fmt.Sprintf("its fitness is %v", f))
		return math.NaN()
	}
	return f
}

// odd tells once of a metric that is no finite number.
func (e *Engine) odd(k int, x float64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.odder {
		e.notes = append(e.notes, engine.Note{Kind: engine.NoteMetric, Text: fmt.Sprintf("the objective gives %v as the metric %s: such values are left out of charts and tables, and the fitness beside them counts", x, e.metrics[k])})
	}
	e.odder = true
}
