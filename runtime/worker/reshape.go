package worker

import (
	"context"
	"fmt"
	"slices"

	"brood/models/engine"
	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/runtime/timeline"
)

// prepare builds the blocks of a new epoch beside the present ones. All old survivors and all new workers take part, in
// one sequence of collectives.
func (w *Worker) prepare(ctx context.Context, p message.Plan) (r optim.Rates, err error) {
	if w.next != nil && w.next.epoch == p.Base {
		w.install(p.Base) // the plan before was ready everywhere, though no grant of it arrived here
	}
	w.next = nil
	next, err := w.begin(p)
	if err != nil {
		return r, err
	}
	switch p.From {
	case event.Fresh:
		w.fresh(next)
	case event.Saved:
		err = w.load(next, p)
	case event.Workers:
		err = w.carry(ctx, next, p)
	default:
		err = fmt.Errorf("plan %d takes its blocks from %q: unknown", p.Epoch, p.From)
	}
	if err != nil {
		return r, err
	}
	next.env.Comm.Workers = p.New.Workers()
	if r, err = w.rates(ctx, next); err != nil {
		return r, err
	}
	next.env.Comm.Ledger = optim.Ledger{}
	w.next = next
	return r, nil
}

// begin lays out the epoch: environment, knobs, empty blocks.
func (w *Worker) begin(p message.Plan) (*installed, error) {
	alg, err := w.cfg.Lookup(p.Algorithm)
	if err != nil {
		return nil, err
	}
	tl, err := timeline.New(alg, p.Timeline)
	if err != nil {
		return nil, err
	}
	s := &installed{epoch: p.Epoch, alg: alg, round: p.At, time: tl, snaps: map[uint64]snapshot{}}
	s.env = w.environment(p.New, p.Epoch, p.New.Workers())
	s.env.Blocks[ProgressBlock] = newProgress()
	for _, b := range s.blocks() {
		s.env.Blocks[b.Name] = w.cfg.Engine.Alloc(rowsOf(b, s.env), b.Cols, b.Type)
	}
	return s, nil
}

func (w *Worker) environment(r optim.Roster, epoch uint32, workers []int) *optim.Env {
	c := w.cfg
	comm := optim.NewComm(c.ID, epoch, r, workers, c.Link, c.Direct)
	comm.Watch = c.Watch
	return &optim.Env{Seed: c.Seed, Roster: r, Self: c.ID, Mine: r.Hosted(c.ID), Layout: c.Layout, Engine: c.Engine, Data: c.Data, Comm: comm, Blocks: map[string]engine.Mat{}}
}

// blocks are those of the algorithm at the present round.
func (s *installed) blocks() []optim.Block { return BlocksAt(s.alg, s.time, s.round, s.env.Layout) }

// BlocksAt lists the blocks that exist for the knobs of a round, in order of declaration.
func BlocksAt(alg *optim.Algorithm, tl *timeline.Timeline, round uint64, l engine.Layout) []optim.Block {
	return slices.DeleteFunc(alg.Blocks(tl.Values(timeline.Position{Round: round}), l), func(b optim.Block) bool { return b.Cols == 0 })
}

func rowsOf(b optim.Block, env *optim.Env) int {
	if b.Shared {
		return 1
	}
	return len(env.Mine)
}

// fresh fills all blocks from the seed.
func (w *Worker) fresh(s *installed) {
	centre := make([]float32, w.cfg.Layout.Params)
	w.cfg.Init(0, centre)
	for _, b := range s.blocks() {
		m := s.env.Blocks[b.Name]
		w.enter(b, m, centre)
		if b.Enter == optim.EnterOwn && !b.Shared {
			for i, id := range s.env.Mine {
				w.cfg.Init(id, m.Row(engine.Row(i)))
			}
		}
	}
}

// enter fills every row of a block as for a member that was not there before.
func (w *Worker) enter(b optim.Block, m engine.Mat, centre []float32) {
	for r := range m.Rows {
		switch row := engine.Row(r); b.Enter {
		case optim.EnterCentre, optim.EnterOwn:
			copy(m.Row(row), centre)
		case optim.EnterOne:
			for j := range m.Row(row) {
				m.Row(row)[j] = 1
			}
		case optim.EnterStats:
			if w.cfg.Stats != nil {
				copy(m.Row(row), w.cfg.Stats)
			} else {
				w.cfg.Layout.FreshStats(m.Row(row))
			}
		}
	}
}

// load restores a checkpoint: the same algorithm and members, whoever hosts them.
func (w *Worker) load(s *installed, p message.Plan) error {
	if p.Checkpoint == nil {
		return fmt.Errorf("plan %d restores a checkpoint but names none", p.Epoch)
	}
	cp := *p.Checkpoint
	if cp.Algorithm != p.Algorithm || !slices.Equal(cp.Roster.Members, p.New.Members) {
		return fmt.Errorf("checkpoint of round %d holds %d members of %s, the plan wants %d of %s", cp.Round, len(cp.Roster.Members), cp.Algorithm, len(p.New.Members), p.Algorithm)
	}
	mine := map[string]bool{}
	eachRow(s.env, s.env.Blocks, s.shared(), func(name string, _ engine.Member, _ engine.Mat) { mine[name] = true })
	rows, err := w.cfg.Store.Load(cp, func(name string) bool { return mine[name] })
	if err != nil {
		return err
	}
	eachRow(s.env, s.env.Blocks, s.shared(), func(name string, _ engine.Member, row engine.Mat) {
		got, ok := rows[name]
		if err == nil && (!ok || got.Cols != row.Cols || got.Type != row.Type) {
			err = fmt.Errorf("checkpoint of round %d has no row %s of %d %s", cp.Round, name, row.Cols, row.Type)
		}
		if err == nil {
			err = engine.CopyHost(engine.All(row), engine.All(got))
		}
	})
	return err
}

// save writes the hosted rows as they were after round at.
func (w *Worker) save(at uint64) ([]event.File, error) {
	s := w.now
	if s == nil {
		return nil, fmt.Errorf("worker %d holds no blocks to save", w.cfg.ID)
	}
	blocks := s.env.Blocks
	if snap, ok := s.snaps[at]; ok {
		blocks = snap.blocks
	} else if s.round != at || s.dirty {
		return nil, fmt.Errorf("worker %d has no snapshot of round %d to save", w.cfg.ID, at)
	}
	shared, lead := s.shared(), s.env.Lead()
	var rows []Row
	eachRow(s.env, blocks, shared, func(name string, m engine.Member, row engine.Mat) {
		if m != engine.None || lead { // shared rows once
			rows = append(rows, Row{name, row})
		}
	})
	f, err := w.cfg.Store.Save(at, s.epoch, w.cfg.ID, rows)
	if err != nil {
		return nil, fmt.Errorf("checkpoint of round %d: %w", at, err)
	}
	return []event.File{f}, nil
}
