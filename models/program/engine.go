package program

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"brood/models"
	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/native"
	"brood/models/noise"
)

const (
	// checkEvery is the interval, in tasks of gradients or steps, at which one result is computed twice to detect varying
	// results.
	checkEvery = 64
	// pieceSize is the maximum samples of one evaluation by the program. It is part of the results: the sums of the
	// pieces are added in order.
	pieceSize = 512
)

// Engine runs tasks of one program. It is used from one goroutine. The creator must call Close.
type Engine struct {
	ram.Memory
	p         *Program
	model     *models.Model
	vector    *native.Vector
	bounds    engine.Bounds
	executors []*executor
	tasks     int // tasks of gradients and of steps

	mu     sync.Mutex
	notes  []engine.Note // pending
	varied bool          // varying results were noted
}

// executor executes requests in its own process. It is used by one goroutine at a time.
type executor struct {
	id  int
	p   *Program
	q   *process  // nil until needed
	row []float32 // parameters of a candidate
}

// Engine returns an engine with as many processes as a worker of that many threads uses. They are started when they are
// needed.
func (p *Program) Engine(threads int) (*Engine, error) {
	m, err := p.Model()
	if err != nil {
		return nil, err
	}
	n := p.Processes(max(1, threads))
	v, err := native.New(m.Layout, max(threads, n))
	if err != nil {
		return nil, err
	}
	e := &Engine{p: p, model: m, vector: v, bounds: m.Bounds(p.set)}
	e.bounds.Norms = m.Layout.Stats > 0
	for i := range n {
		e.executors = append(e.executors, &executor{id: i, p: p})
	}
	return e, nil
}

// Kernels returns [Program.Kernels].
func (e *Engine) Kernels() string { return e.p.Kernels() }

// Metrics returns the names of the metrics besides the loss; read-only.
func (e *Engine) Metrics() []string { return e.p.desc.Metrics }

// EstimateMemory estimates the memory of vector tasks, of a candidate for each process, and of the files shared with
// the processes, in bytes. It excludes the memory of the processes.
func (e *Engine) EstimateMemory(w engine.Work) int64 {
	at := offsetsOf(&e.model.Layout, e.p.desc.Steps)
	return e.vector.EstimateMemory(w) + int64(len(e.executors))*(at.size+2*4*int64(e.model.Layout.Params))
}

// Threads implements [engine.Threaded]: it returns the number of processes.
func (e *Engine) Threads() int { return len(e.executors) }

// Close returns the processes to the program.
func (e *Engine) Close() {
	for _, l := range e.executors {
		if l.q != nil {
			e.p.put(l.q)
			l.q = nil
		}
	}
}

// Notes returns the notes since the last call.
func (e *Engine) Notes() []engine.Note {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := e.notes
	e.notes = nil
	return out
}

// Do runs the tasks in order. Their outputs are readable when it returns. It stops at the first error.
func (e *Engine) Do(ctx context.Context, tasks ...engine.Task) error {
	return engine.InOrder(ctx, tasks, e.do)
}

func (e *Engine) do(ctx context.Context, t engine.Task) error {
	switch t := t.(type) {
	case engine.Gradients:
		return e.gradients(ctx, t)
	case engine.Steps:
		return e.steps(ctx, t)
	case engine.Evaluate:
		return e.evaluate(ctx, t)
	case engine.Candidates:
		return e.candidates(ctx, t)
	case engine.Statistics:
		return e.statistics(ctx, t)
	}
	return e.vector.Do(ctx, t)
}

// do has the executor's process execute t, and starts it if it is not running.
func (l *executor) do(ctx context.Context, t task, r *result) (err error) {
	if l.q == nil {
		if l.q, err = l.p.take(ctx); err != nil {
			return err
		}
	}
	if err := l.q.do(ctx, t, r); err != nil {
		l.q = nil
		return l.p.cause(err)
	}
	return nil
}

// repeats reports whether the first result of the next task is to be computed twice.
func (e *Engine) repeats() bool {
	e.tasks++
	return e.tasks%checkEvery == 1
}

func (e *Engine) gradients(ctx context.Context, t engine.Gradients) error {
	if err := e.bounds.Gradients(&t); err != nil {
		return err
	}
	x, g := ram.View(t.X), ram.View(t.G)
	twice := e.repeats()
	gradient := func(l *executor, i int) error {
		request := task{
			kind:    kindGradient,
			batches: t.Batches[i : i+1],
			params:  x.Row(t.Rows[i]),
			outGrad: g.Row(engine.Row(i)),
		}
		if t.Next != nil {
			request.next = &t.Next[i]
		}
		if t.Masks != nil {
			request.key = key64(t.Masks[i])
		}
		if e.bounds.Norms {
			request.stats = ram.View(t.Stats).Row(t.StatRows[i])
			request.outStats = request.stats
		}
		var r, again result
		var first []float32
		if twice && i == 0 {
			once := request
			first = slices.Clone(request.outGrad)
			once.outGrad, once.outStats = first, nil
			if err := l.do(ctx, once, &again); err != nil {
				return err
			}
		}
		if err := l.do(ctx, request, &r); err != nil {
			return err
		}
		if first != nil {
			e.compare(again.loss, r.loss, first, request.outGrad)
		}
		t.Loss[i] = float32(r.loss)
		return nil
	}
	if t.Next == nil {
		return engine.Each(ctx, e.executors, len(t.Rows), gradient)
	}
	n := len(e.executors) // each member has its executor, whose process reads its batches ahead
	return engine.Each(ctx, e.executors, n, func(_ *executor, k int) error {
		for i, r := range t.StatRows {
			if int(r)%n != k {
				continue
			}
			if err := gradient(e.executors[k], i); err != nil {
				return err
			}
		}
		return nil
	})
}

// Ahead implements [engine.Ahead]: each process reads as many batches ahead as it wishes, or one for each of its
// members.
func (e *Engine) Ahead(members int) int {
	if e.p.desc.Ahead == 0 || members == 0 {
		return 0
	}
	return max(1, e.p.desc.Ahead*min(len(e.executors), members)/members)
}

// Steps implements [engine.Stepper]. Muon's steps are brood's own, along the program's gradients.
func (e *Engine) Steps(optimiser string) bool {
	return e.p.desc.Steps && slices.Contains(optimisers, optimiser) && (optimiser != engine.Program || e.p.desc.State > 0)
}

func (e *Engine) steps(ctx context.Context, t engine.Steps) error {
	if err := e.bounds.Steps(&t); err != nil {
		return err
	}
	x := ram.View(t.X)
	twice := e.repeats()
	return engine.Each(ctx, e.executors, len(t.Rows), func(l *executor, i int) error {
		row, entry := t.Rows[i], t.Entries[i]
		request := task{
			kind:    kindSteps,
			batches: entry.Batches,
			params:  x.Row(t.XRows[i]),
			steps: &optimiserSteps{
				optimiser: t.Optimiser,
				taken:     entry.T,
				eta:       entry.Eta,
				mu:        t.Mu,
				b1:        t.B1,
				b2:        t.B2,
				eps:       t.Eps,
				coupled:   entry.Coupled,
				decay:     entry.Decay,
				clip:      t.Clip,
			},
		}
		for _, k := range entry.Masks {
			request.steps.keys = append(request.steps.keys, key64(k))
		}
		if t.M.Rows > 0 {
			request.first = ram.View(t.M).Row(row)
		}
		if t.State.Rows > 0 {
			request.state = t.State.URow(row)
		}
		if t.V.Rows > 0 {
			request.second = ram.View(t.V).Row(row)
		}
		if e.bounds.Norms {
			request.stats = ram.View(t.Stats).Row(row)
		}
		if t.Anchor.Rows > 0 {
			request.flags |= flagAnchored
			request.steps.pull, request.steps.alpha = t.Pull, t.Alpha
			request.anchor, request.mean = ram.View(t.Anchor).Row(row), ram.View(t.Mean).Row(row)
		}
		var r, again result
		var first []float32
		if twice && i == 0 {
			once := request
			first = slices.Clone(request.params)
			once.outParams = first
			if err := l.do(ctx, once, &again); err != nil {
				return err
			}
		}
		request.outParams, request.outFirst, request.outSecond = request.params, request.first, request.second
		request.outStats, request.outMean, request.outState = request.stats, request.mean, request.state
		if err := l.do(ctx, request, &r); err != nil {
			return err
		}
		if first != nil {
			e.compare(again.loss, r.loss, first, request.params)
		}
		t.Loss[i] = float32(r.loss)
		return nil
	})
}

// compare notes, once, if two results of the same inputs differ: losses, and gradients or parameters after steps.
func (e *Engine) compare(lossA, lossB float64, gradA, gradB []float32) {
	what := ""
	if math.Float64bits(lossA) != math.Float64bits(lossB) {
		what = fmt.Sprintf("losses, %v and %v", lossA, lossB)
	}
	for i := range gradA {
		if math.Float32bits(gradA[i]) != math.Float32bits(gradB[i]) {
			what = fmt.Sprintf("results, at parameter %d %v and %v", i, gradA[i], gradB[i])
			break
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if what == "" || e.varied {
		return
	}
	e.varied = true
	e.notes = append(e.notes, engine.Note{
		Kind: engine.NoteVaries,
		Text: "the program gives different " + what + " for the same parameters, samples and key: " +
			"this session cannot verify exactly",
	})
}

// piece is a part of an evaluation: samples of entry i.
type piece struct {
	i       int
	samples []int32
	last    bool // of its entry, which is reported with it; earlier pieces may still be evaluated
	result
}

// pieces divides the batches of n entries, or the one batch for all, into pieces of at most pieceSize samples.
func (e *Engine) pieces(batches [][]int32, n int) (out []piece) {
	for i := range n {
		for left := batches[min(i, len(batches)-1)]; len(left) > 0; {
			size := min(pieceSize, len(left))
			if len(left) == pieceSize+1 {
				size-- // a piece of one sample has no variance
			}
			result := result{metrics: make([]float64, len(e.Metrics()))}
			out = append(out, piece{i, left[:size], size == len(left), result})
			left = left[size:]
		}
	}
	return out
}

// sum adds the results of the pieces of each of n entries, in order.
func (e *Engine) sum(pieces []piece, n int) []result {
	out := make([]result, n)
	for i := range out {
		out[i].metrics = make([]float64, len(e.Metrics()))
	}
	for _, p := range pieces {
		r := &out[p.i]
		r.loss += p.loss
		r.correct += p.correct
		for k, x := range p.metrics {
			r.metrics[k] += x
		}
	}
	return out
}

// evaluation returns the request to evaluate parameters on samples; drawn is the address at which they were drawn, the
// zero Key if that does not matter.
func evaluation(params []float32, samples []int32, drawn noise.Key) task {
	t := task{kind: kindEvaluate, params: params, batches: [][]int32{samples}}
	if drawn != (noise.Key{}) {
		t.key = key64(drawn)
	}
	return t
}

func (e *Engine) evaluate(ctx context.Context, t engine.Evaluate) error {
	if err := e.bounds.Evaluate(&t); err != nil {
		return err
	}
	x, pieces := ram.View(t.X), e.pieces(t.Batches, len(t.Rows))
	err := engine.Each(ctx, e.executors, len(pieces), func(l *executor, k int) error {
		p := &pieces[k]
		request := evaluation(x.Row(t.Rows[p.i]), p.samples, engine.DrawnAt(t.Drawn, p.i))
		switch {
		case !e.bounds.Norms:
		case t.Stats.Rows > 0:
			request.stats = ram.View(t.Stats).Row(t.Rows[p.i])
		default:
			request.flags = flagOwnStatistics
		}
		return l.do(ctx, request, &p.result)
	})
	if err != nil {
		return err
	}
	for i, r := range e.sum(pieces, len(t.Rows)) {
		t.Loss[i], t.Correct[i] = r.loss, int64(r.correct)
		if len(t.Metrics) > 0 {
			copy(t.Metrics[i*len(r.metrics):], r.metrics)
		}
	}
	return nil
}

func (e *Engine) candidates(ctx context.Context, t engine.Candidates) error {
	if err := e.bounds.Candidates(&t); err != nil {
		return err
	}
	pieces := e.pieces(t.Batches, len(t.IDs))
	evaluate := e.candidateRows
	if e.p.desc.Candidates && t.Scale.Rows == 0 {
		evaluate = e.candidateAddresses
	}
	if err := evaluate(ctx, &t, pieces); err != nil {
		return err
	}
	for i, r := range e.sum(pieces, len(t.IDs)) {
		n := float64(len(t.Batches[min(i, len(t.Batches)-1)]))
		for k, x := range r.metrics {
			if len(t.Metrics) > 0 {
				t.Metrics[i*len(r.metrics)+k] = x / n
			}
		}
		f := float32(-r.loss / n)
		if math.IsInf(float64(f), 0) {
			f = float32(math.NaN())
		}
		t.Fitness[i] = f
	}
	return nil
}

// candidateRows evaluates pieces of candidates whose parameters are computed here.
func (e *Engine) candidateRows(ctx context.Context, t *engine.Candidates, pieces []piece) error {
	return engine.Each(ctx, e.executors, len(pieces), func(l *executor, k int) error {
		p := &pieces[k]
		if l.row == nil {
			l.row = make([]float32, e.model.Layout.Params)
		}
		if err := e.vector.Candidate(l.id, l.row, t, p.i); err != nil {
			return err
		}
		if err := l.do(ctx, e.candidate(t, p, l.row), &p.result); err != nil {
			return err
		}
		if p.last {
			t.Report(1)
		}
		return nil
	})
}

// candidateAddresses evaluates pieces of candidates whose parameters the program computes: it is sent the centre once,
// and the addresses of the noise. One process evaluates all pieces with one address, so that it draws the noise once,
// unless that would leave processes idle.
func (e *Engine) candidateAddresses(ctx context.Context, t *engine.Candidates, pieces []piece) error {
	theta, sent := ram.View(t.Theta).Row(0), make([]bool, len(e.executors))
	var groups [][]piece
	var last noise.Key
	for k := range pieces {
		key, _ := engine.Signed(t.Key, t.Antithetic, t.IDs[pieces[k].i])
		if n := len(groups); n > 0 && key == last {
			groups[n-1] = groups[n-1][:len(groups[n-1])+1]
		} else {
			groups, last = append(groups, pieces[k:k+1]), key
		}
	}
	if len(groups) < len(e.executors) {
		groups = slices.Collect(slices.Chunk(pieces, 1))
	}
	return engine.Each(ctx, e.executors, len(groups), func(l *executor, g int) error {
		for k := range groups[g] {
			p := &groups[g][k]
			request := e.address(t, p)
			if !sent[l.id] {
				request.params, sent[l.id] = theta, true
				request.flags |= flagCentre
			}
			if err := l.do(ctx, request, &p.result); err != nil {
				return err
			}
			if p.last {
				t.Report(1)
			}
		}
		return nil
	})
}

// address returns the request to evaluate a piece of a candidate at the address of its noise.
func (e *Engine) address(t *engine.Candidates, p *piece) task {
	key, sign := engine.Signed(t.Key, t.Antithetic, t.IDs[p.i])
	request := e.candidate(t, p, nil)
	request.kind, request.candidate = kindCandidate, &candidate{key, t.Noise, sign * t.Sigma}
	return request
}

// candidate returns the request to evaluate a piece of a candidate with the given parameters.
func (e *Engine) candidate(t *engine.Candidates, p *piece, params []float32) task {
	request := evaluation(params, p.samples, engine.DrawnAt(t.Drawn, min(p.i, len(t.Batches)-1)))
	if e.bounds.Norms {
		request.flags = flagOwnStatistics
	}
	return request
}

func (e *Engine) statistics(ctx context.Context, t engine.Statistics) error {
	if err := e.bounds.Statistics(&t); err != nil {
		return err
	}
	if !e.bounds.Norms {
		return nil
	}
	x, stats := ram.View(t.X), ram.View(t.Stats)
	return engine.Each(ctx, e.executors, len(t.Rows), func(l *executor, i int) error {
		row := stats.Row(engine.Row(i))
		request := task{kind: kindStatistics, params: x.Row(t.Rows[i]), batches: t.Batches, stats: row, outStats: row}
		return l.do(ctx, request, &result{})
	})
}
