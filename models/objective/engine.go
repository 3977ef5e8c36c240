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

// Kernels identifies the arithmetic of candidates and updates. The fitness is computed by the objective.
const Kernels = "objective/" + arith.Name

const (
	firstRestartNote  = 4   // restarts at the first note; each further note follows at twice as many
	recentEvaluations = 100 // a note counts the restarts within these last evaluations separately
)

// checkEvery is the interval, in evaluating tasks, at which one evaluation is repeated to detect varying results.
const checkEvery = 64

// Engine runs tasks for one objective. Except for Restarts it is used from one goroutine. The creator must call Close.
type Engine struct {
	ram.Memory
	o              Objective
	fn             Measured // nil if the objective is a program
	metrics        []string // names of the metrics besides the fitness
	metricsKnown   bool     // metrics is set: a first process has declared them
	model          *models.Model
	limit          time.Duration
	vector         *native.Vector
	bounds         engine.Bounds
	low            []float32 // lower bound per parameter; nil if none is bounded
	high           []float32
	executors      []*executor
	tasks          int // number of evaluating tasks
	mu             sync.Mutex
	missing        int           // missing results since the last call of Notes
	missingReason  string        // cause of the first of them
	notes          []engine.Note // other pending notes
	notedVariation bool          // varying results were noted
	notedOddMetric bool          // a metric that is not finite was noted

	evaluations     int    // completed or failed evaluations
	restarts        int    // of processes
	recent          []int  // number of evaluations at each restart within the last recentEvaluations
	lastExit        string // cause of the last restart
	notedRestarts   int    // restarts at the last note about them
	nextRestartNote int    // restarts at which the next note is due
}

// New returns an engine for the objective. It starts a first process, and fails if that cannot be started. threads is
// at least 1; lower values count as 1.
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
	e := &Engine{
		o:               o,
		nextRestartNote: firstRestartNote,
		fn:              o.function(),
		metrics:         o.Metrics,
		model:           m,
		vector:          v,
		bounds:          m.Bounds(o.Spec.Data()),
	}
	if e.limit, err = o.Spec.timeout(); err != nil {
		return nil, err
	}
	e.expandBounds()
	for i := range n {
		e.executors = append(e.executors, &executor{id: i, e: e})
	}
	if err := e.executors[0].ensureProcess(context.Background()); err != nil {
		return nil, err
	}
	if p := e.executors[0].p; p != nil {
		e.metrics = p.reply.metrics
	}
	e.metricsKnown = true
	return e, nil
}

// Metrics returns the names of the metrics besides the fitness; read-only.
func (e *Engine) Metrics() []string { return e.metrics }

// expandBounds sets low and high from the bounds of the tensors.
func (e *Engine) expandBounds() {
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

// Model returns the objective's parameters as a model; read-only.
func (e *Engine) Model() *models.Model { return e.model }

// Data returns the seeds as samples.
func (e *Engine) Data() *data.Set { return e.o.Spec.Data() }

// Kernels returns the package constant [Kernels].
func (e *Engine) Kernels() string { return Kernels }

// EstimateMemory estimates the memory of vector tasks and of pending batches, in bytes. It excludes the memory of the
// processes.
func (e *Engine) EstimateMemory(w engine.Work) int64 {
	rows := int64(e.batchRows(max(w.Candidates*w.Batch, w.Rows*w.Scores)))
	return e.vector.EstimateMemory(w) + int64(len(e.executors))*rows*2*4*int64(e.model.Layout.Params)
}

// Close closes the input of all processes and waits until they have exited. Processes that take too long are killed.
func (e *Engine) Close() {
	var wg sync.WaitGroup
	for _, l := range e.executors {
		if l.p != nil {
			wg.Go(l.p.shutdown)
			l.p = nil
		}
	}
	wg.Wait()
}

// Notes returns the notes since the last call.
func (e *Engine) Notes() []engine.Note {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := e.notes
	if e.missing > 0 {
		out = append(out, engine.Note{
			Kind: engine.NoteMissing,
			Text: fmt.Sprintf("results that the objective did not give, and that count as the worst: %d; the first: %s",
				e.missing, e.missingReason),
		})
	}
	if e.restarts >= e.nextRestartNote {
		out = append(out, engine.Note{Kind: engine.NoteRestarts, Text: e.restartsText()})
		e.notedRestarts, e.nextRestartNote = e.restarts, firstRestartNote
		for e.nextRestartNote <= e.restarts {
			e.nextRestartNote *= 2
		}
	}
	e.missing, e.missingReason, e.notes = 0, "", nil
	return out
}

// Do runs the tasks in order. Their outputs are readable when it returns. It stops at the first error.
func (e *Engine) Do(ctx context.Context, tasks ...engine.Task) error {
	return engine.InOrder(ctx, tasks, e.do)
}

func (e *Engine) do(ctx context.Context, t engine.Task) error {
	switch t := t.(type) {
	case engine.Candidates:
		return e.candidates(ctx, t)
	case engine.Evaluate:
		return e.evaluate(ctx, t)
	case engine.Gradients, engine.Statistics:
		return &engine.UnsupportedError{Task: t}
	}
	return e.vector.Do(ctx, t)
}

func (e *Engine) evaluate(ctx context.Context, t engine.Evaluate) error {
	if err := e.bounds.Evaluate(&t); err != nil {
		return err
	}
	x := ram.View(t.X)
	out, err := e.score(ctx, t.Batches, len(t.Rows), t.Metrics, nil, func(_ *executor, i int, dst []float32) error {
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
	out, err := e.score(ctx, t.Batches, len(t.IDs), t.Metrics, t.Evaluated, func(l *executor, i int, dst []float32) error {
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
			e.recordMissing(fmt.Sprintf("its fitness %g is beyond float32", f))
			t.Fitness[i] = float32(math.NaN())
		}
	}
	return nil
}

// evaluation is one call of the objective: candidate i with a seed.
type evaluation struct {
	i    int
	seed int32
}

// score returns, for each of n candidates, the fitness summed over the seeds of its batch in order; NaN if a result is
// missing. batches contains one batch for all candidates or one each. If metrics is not empty, it has one row per
// candidate and receives the summed metrics. report, if not nil, is called as candidates are evaluated. fill writes the
// parameters of candidate i to dst.
func (e *Engine) score(
	ctx context.Context, batches [][]int32, n int, metrics []float64, report func(candidates int),
	fill func(l *executor, i int, dst []float32) error,
) ([]float64, error) {
	wide := len(e.metrics)
	if len(metrics) != 0 && len(metrics) != n*wide {
		return nil, fmt.Errorf("room for %d metrics of %d candidates, want none or %d of each", len(metrics), n, wide)
	}
	var units []evaluation
	for i := range n {
		for _, s := range batches[min(i, len(batches)-1)] {
			units = append(units, evaluation{i, s})
		}
	}
	real := len(units)
	if e.tasks++; real > 0 && e.tasks%checkEvery == 1 {
		units = append(units, units[0])
	}
	fitness := make([]float64, len(units))
	w := &job{
		evaluations: units,
		fitness:     fitness,
		metrics:     make([]float64, wide*len(units)),
		batchSize:   e.batchRows(len(units)),
		executors:   len(e.executors),
		fill:        fill,
		candidates:  n,
		report:      report,
	}
	w.batchSize = max(1, min(w.batchSize, len(units)/(batchesPerProcess*len(e.executors))))
	runJob := func(l *executor, _ int) error { return l.run(ctx, w) }
	if err := engine.Each(ctx, e.executors, len(e.executors), runJob); err != nil {
		return nil, err
	}
	if len(units) > real {
		e.compareRepeated(fitness[0], fitness[real])
		if math.IsNaN(fitness[real]) { // the repeated evaluation is already counted
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

// batchRows returns n limited to the maximum evaluations per batch, at least 1.
func (e *Engine) batchRows(n int) int {
	return max(1, min(n, maxRowsOf(e.model.Layout.Params)))
}

// compareRepeated notes, once, if two results for the same parameters and seed differ.
func (e *Engine) compareRepeated(a, b float64) {
	if a == b || math.IsNaN(a) || math.IsNaN(b) || e.notedVariation {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.notedVariation = true
	e.notes = append(e.notes, engine.Note{
		Kind: engine.NoteVaries,
		Text: fmt.Sprintf("the objective gives different fitness for the same parameters and seed, %v and %v: "+
			"this session cannot verify exactly", a, b),
	})
}

// countEvaluations counts n completed or failed evaluations.
func (e *Engine) countEvaluations(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.evaluations += n
}

// countRestart counts a process that exited and will be restarted.
func (e *Engine) countRestart(why error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.restarts, e.lastExit, e.recent = e.restarts+1, why.Error(), append(e.recentRestarts(), e.evaluations)
}

// recentRestarts returns the restarts within the last recentEvaluations.
func (e *Engine) recentRestarts() []int {
	return slices.DeleteFunc(e.recent, func(at int) bool { return at < e.evaluations-recentEvaluations })
}

// restartsText returns the text of the note about restarts.
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
	return fmt.Sprintf("program %s was restarted %s in %d evaluations%s: "+
		"find out why it ends, as each restart delays its worker; the last time %s",
		strings.Join(e.o.Command, " "), times(e.restarts), e.evaluations, last, e.lastExit)
}

// Restarts returns how often processes were restarted. ok is false if the objective is a function. It is safe for
// concurrent use.
func (e *Engine) Restarts() (n int, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.restarts, e.fn == nil
}

// Ending makes the next call of Notes report all restarts not yet noted, however few. Call it at the end of a run.
func (e *Engine) Ending() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.nextRestartNote = e.notedRestarts + 1
}

// recordMissing counts a missing result and stores the cause of the first.
func (e *Engine) recordMissing(why string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.missing++; e.missingReason == "" {
		e.missingReason = why
	}
}

// checkResult returns the fitness f, or NaN if it is not finite, which counts as a missing result. It also replaces
// metrics that are not finite by NaN; these do not affect the fitness.
func (e *Engine) checkResult(f float64, metrics []float64) float64 {
	for k, x := range metrics {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			e.noteOddMetric(k, x)
			metrics[k] = math.NaN()
		}
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		e.recordMissing(fmt.Sprintf("its fitness is %v", f))
		return math.NaN()
	}
	return f
}

// noteOddMetric notes, once, that metric k has the value x, which is not finite.
func (e *Engine) noteOddMetric(k int, x float64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.notedOddMetric {
		e.notes = append(e.notes, engine.Note{
			Kind: engine.NoteMetric,
			Text: fmt.Sprintf("the objective gives %v as the metric %s: such values are left out of charts and tables, "+
				"and the fitness is used", x, e.metrics[k]),
		})
	}
	e.notedOddMetric = true
}
