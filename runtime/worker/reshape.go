package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/runtime/timeline"
)

// prepare builds the blocks of a new epoch while the present ones stay in effect. The call is collective over all
// survivors of the old epoch and all workers of the new one.
func (w *Worker) prepare(ctx context.Context, p message.Plan) (r optim.Rates, err error) {
	if err := errors.Join(p.Old.Validate(), p.New.Validate()); err != nil {
		return r, err
	}
	if w.next != nil && w.next.epoch == p.Base {
		w.install(p.Base) // the previous plan was ready on all workers, but no grant of it arrived here
	}
	if w.next != nil {
		w.next.free()
		w.next = nil
	}
	if w.last = nil; p.Witness {
		defer w.observe(message.OrderName{Epoch: p.Epoch, Plan: true})()
	}
	next, err := w.begin(p)
	if err != nil {
		return r, err
	}
	ready := false // a program may panic
	defer func() {
		if !ready {
			next.free()
		}
	}()
	switch p.From {
	case event.Fresh:
		err = w.fresh(ctx, next)
	case event.Saved:
		err = w.load(ctx, next, p)
	case event.Workers:
		err = w.carryOver(ctx, next, p)
	default:
		err = fmt.Errorf("plan %d: unknown source of blocks %q", p.Epoch, p.From)
	}
	if err != nil {
		return r, err
	}
	next.env.Comm.Workers = p.New.Workers()
	if next.mirrors.on() {
		if err := next.mirror(ctx); err != nil {
			return r, fmt.Errorf("mirror of round %d: %w", next.round, err)
		}
	}
	if r, err = w.rates(ctx, next); err != nil {
		return r, err
	}
	next.env.Comm.Ledger = collective.Ledger{}
	w.next, ready = next, true
	return r, nil
}

// begin creates the state of an epoch: environment, knobs and zeroed blocks.
func (w *Worker) begin(p message.Plan) (*epochState, error) {
	alg, err := w.cfg.Lookup(p.Algorithm)
	if err != nil {
		return nil, err
	}
	tl, err := timeline.New(alg, p.Timeline)
	if err != nil {
		return nil, err
	}
	s := &epochState{epoch: p.Epoch, alg: alg, round: p.At, time: tl, snaps: map[uint64]snapshot{}}
	if p.Mirror {
		s.mirrors.at = map[uint64]state{}
	}
	if p.Witness {
		s.transcripts = map[uint64]transcript{}
	}
	s.env = w.environment(p.New, p.Epoch, p.New.Workers())
	s.env.Records[message.ProgressBlock] = newProgress()
	blocks := s.blocks()
	doing := w.beginStage(StageMemory, len(s.env.Mine), len(blocks))
	for i, b := range blocks {
		doing.done.Store(int64(i))
		if b.Record && b.Enter != optim.EnterZero && b.Enter != optim.EnterOne || !b.Record && b.Type != engine.F32 {
			s.free()
			return nil, fmt.Errorf("block %s of %s: a record must enter as zero or one, and counters must be records",
				b.Name, alg.Name)
		}
		if b.Record {
			s.env.Records[b.Name] = engine.NewHost(rowsOf(b, s.env), b.Cols, b.Type)
			continue
		}
		m, err := w.cfg.Engine.Alloc(rowsOf(b, s.env), b.Cols)
		if err != nil {
			s.free()
			return nil, fmt.Errorf("block %s: %w", b.Name, err)
		}
		s.env.Blocks[b.Name] = m
	}
	return s, nil
}

func (w *Worker) environment(r collective.Roster, epoch uint32, workers []int) *optim.Env {
	c := w.cfg
	comm := collective.NewComm(c.ID, epoch, r, workers, w.link, c.Slow, c.Direct)
	comm.Clock = c.Clock
	return &optim.Env{
		Seed:     c.Seed,
		Roster:   r,
		Self:     c.ID,
		Mine:     r.Hosted(c.ID),
		Layout:   c.Layout,
		Engine:   c.Slow,
		Data:     c.Data,
		Metrics:  c.Metrics,
		MetaOnly: c.MetaOnly,
		Comm:     comm,
		Blocks:   map[string]engine.Mat{},
		Records:  map[string]engine.Host{},
	}
}

// blocks returns the algorithm's blocks at the current round.
func (s *epochState) blocks() []optim.Block {
	return timeline.BlocksAt(s.alg, s.time, s.round, s.env.Layout)
}

func rowsOf(b optim.Block, env *optim.Env) int {
	if b.Shared {
		return 1
	}
	return len(env.Mine)
}

// fresh fills all blocks from the seed.
func (w *Worker) fresh(ctx context.Context, s *epochState) error {
	e, initial := w.cfg.Engine, engine.NewHost(1, w.cfg.Layout.Params, engine.F32)
	write := func(dst engine.Span, m engine.Member) error {
		clear(initial.F)
		if err := w.cfg.Init(ctx, m, initial.F); err != nil {
			return fmt.Errorf("initial parameters of member %d: %w", m, err)
		}
		return e.Write(ctx, dst, engine.AppendRows(nil, initial, 0, 1))
	}
	centre, err := e.Alloc(1, w.cfg.Layout.Params)
	if err != nil {
		return err
	}
	defer e.Free(centre)
	if err := write(engine.All(centre), 0); err != nil {
		return err
	}
	doing := w.beginStage(StageMembers, len(s.env.Mine), len(s.env.Mine))
	for _, b := range s.blocks() {
		if err := w.enter(ctx, s.env, b, centre); err != nil {
			return err
		}
		if b.Enter != optim.EnterDrawn || b.Shared {
			continue
		}
		for i, id := range s.env.Mine {
			if err := write(engine.RowOf(s.env.Blocks[b.Name], engine.Row(i)), id); err != nil {
				return err
			}
			doing.done.Store(int64(i + 1))
		}
	}
	return nil
}

// enter initializes every row of a zeroed block as for a new member.
func (w *Worker) enter(ctx context.Context, env *optim.Env, b optim.Block, centre engine.Mat) error {
	if b.Record {
		if m := env.Records[b.Name]; b.Enter == optim.EnterOne {
			for i := range m.F {
				m.F[i] = 1
			}
		}
		return nil
	}
	m := env.Blocks[b.Name]
	var tasks []engine.Task
	switch b.Enter {
	case optim.EnterCentre, optim.EnterDrawn:
		for r := range engine.Row(m.Rows) {
			tasks = append(tasks, engine.Copy{Dst: engine.RowOf(m, r), Src: engine.All(centre)})
		}
	case optim.EnterOne:
		tasks = append(tasks, engine.Fill{Dst: engine.All(m), Value: 1})
	case optim.EnterStats:
		first := w.cfg.Stats
		if first == nil {
			first = make([]float32, b.Cols)
			w.cfg.Layout.FreshStats(first)
		}
		p := engine.AppendFloats(nil, first)
		for r := range engine.Row(m.Rows) {
			if err := w.cfg.Engine.Write(ctx, engine.RowOf(m, r), p); err != nil {
				return err
			}
		}
	}
	return w.cfg.Engine.Do(ctx, tasks...)
}

// load restores a checkpoint of the same algorithm and members; their placement may differ.
func (w *Worker) load(ctx context.Context, s *epochState, p message.Plan) error {
	if p.Checkpoint == nil {
		return fmt.Errorf("plan %d restores a checkpoint but names none", p.Epoch)
	}
	cp := *p.Checkpoint
	if cp.Algorithm != p.Algorithm || !slices.Equal(cp.Roster.Members, p.New.Members) {
		return fmt.Errorf("checkpoint of round %d holds %d members of %s, the plan wants %d of %s",
			cp.Round, len(cp.Roster.Members), cp.Algorithm, len(p.New.Members), p.Algorithm)
	}
	mine, rows := map[string]bool{}, stateOf(s.env).rows(s.env.Mine, s.shared())
	for _, r := range rows {
		mine[r.name()] = true
	}
	saved, err := w.cfg.Store.Load(cp, func(name string) bool { return mine[name] })
	if err != nil {
		return err
	}
	for _, r := range rows {
		got, ok := saved[r.name()]
		if !ok || got.Cols != r.cols || got.Type != r.dtype() {
			return fmt.Errorf("checkpoint of round %d has no row %s of %d %s", cp.Round, r.name(), r.cols, r.dtype())
		}
		if err := r.write(ctx, w.cfg.Engine, engine.AppendRows(nil, got, 0, 1)); err != nil {
			return err
		}
	}
	return nil
}

// BetweenRounds lets f run between two rounds of a grant, on the goroutine that executes it. f may call Save.
func (w *Worker) BetweenRounds(f func(context.Context)) { w.between = f }

// Save executes an order to save, of the epoch in effect.
func (w *Worker) Save(ctx context.Context, m message.Save) message.Saved {
	t := w.cfg.Clock()
	files, err := w.save(ctx, m.At)
	s := message.Saved{
		Worker: w.cfg.ID,
		Epoch:  m.Epoch,
		At:     m.At,
		Files:  files,
		Nanos:  w.cfg.Clock() - t,
		Hash:   m.Hash,
	}
	if err != nil {
		w.noteDeviceError(err)
		s.Err = err.Error()
	}
	return s
}

// save writes the hosted rows as of round at: from a snapshot, or from the blocks if no round was executed since. The
// lead writes the shared rows too.
func (w *Worker) save(ctx context.Context, at uint64) ([]event.File, error) {
	s := w.now
	if s == nil {
		return nil, fmt.Errorf("worker %d holds no blocks to save", w.cfg.ID)
	}
	blocks := stateOf(s.env)
	if snap, ok := s.snaps[at]; ok {
		blocks = snap.state
	} else if s.round != at || s.dirty {
		return nil, fmt.Errorf("worker %d has no snapshot of round %d to save", w.cfg.ID, at)
	}
	ctx = context.WithoutCancel(ctx) // a save that has begun is useful even after an abort
	lead := s.env.Lead()
	var rows []Row
	for _, r := range blocks.rows(s.env.Mine, s.shared()) {
		if r.member == engine.None && !lead {
			continue // the lead writes shared rows
		}
		out := Row{Name: r.name(), Cols: r.cols, Record: r.record}
		if r.mat.Rows > 0 {
			out.Pull = func(p []byte, at int) error {
				return w.cfg.Engine.Read(ctx, p, engine.Span{Mat: r.mat, Rows: 1, Lo: at, Hi: at + len(p)/4})
			}
		}
		rows = append(rows, out)
	}
	f, err := w.cfg.Store.Save(at, s.epoch, w.cfg.ID, rows)
	if err != nil {
		return nil, fmt.Errorf("checkpoint of round %d: %w", at, err)
	}
	return []event.File{f}, nil
}
