package worker

import (
	"context"
	"fmt"
	"slices"

	"brood/models/engine"
	"brood/optim"
	"brood/runtime/message"
	"brood/runtime/timeline"
)

// carry brings the blocks of the last epoch over: the survivors agree on the centre, blocks equal in name, scope and
// shape keep their rows, wherever they move, and everything else enters as its block says.
func (w *Worker) carry(ctx context.Context, next *installed, p message.Plan) error {
	left := p.Old.Without(p.Lost)
	if len(left.Members) == 0 {
		return fmt.Errorf("membership epoch %d: no member survived: go back to a checkpoint", p.Epoch)
	}
	oldAlg, err := w.cfg.Lookup(p.OldAlg)
	if err != nil {
		return err
	}
	oldTime, err := timeline.New(oldAlg, p.Before)
	if err != nil {
		return err
	}
	oldBlocks := BlocksAt(oldAlg, oldTime, p.At, w.cfg.Layout)
	survivors := left.Workers()
	had := slices.Contains(survivors, w.cfg.ID)
	everyone := append(slices.Clone(survivors), p.New.Workers()...)
	slices.Sort(everyone)
	everyone = slices.Compact(everyone)

	old := w.environment(left, p.Epoch, survivors)
	centre := engine.New(1, w.cfg.Layout.Params, engine.F32)
	if had {
		if err := w.present(p, old); err != nil {
			return err
		}
		k := oldTime.Values(positionOf(old))
		if err := leave(ctx, oldAlg, old, k, p); err != nil {
			return err
		}
		if err := oldAlg.Program.Centre(ctx, old, k, centre); err != nil {
			return err
		}
	}
	next.env.Comm.Continue(old.Comm)
	next.env.Comm.Workers = everyone
	c := caster{ctx: ctx, comm: next.env.Comm, from: survivors[0], to: without(everyone, survivors)}
	if err := c.cast(centre); err != nil {
		return err
	}
	carried := []optim.Block{{Name: ProgressBlock, Shared: true, Cols: progCols, Type: engine.U64}}
	for _, b := range next.blocks() {
		w.enter(b, next.env.Blocks[b.Name], centre.F)
		if i := slices.IndexFunc(oldBlocks, func(o optim.Block) bool { return o.Name == b.Name }); i >= 0 {
			if o := oldBlocks[i]; o.Shared == b.Shared && o.Cols == b.Cols && o.Type == b.Type {
				carried = append(carried, b)
			}
		}
	}
	for _, b := range carried {
		dst, src := next.env.Blocks[b.Name], old.Blocks[b.Name]
		if !b.Shared {
			if err := moveRows(ctx, next, left, p.New, b, src, dst); err != nil {
				return err
			}
			continue
		}
		if had {
			if err := engine.CopyHost(engine.All(dst), engine.All(src)); err != nil {
				return err
			}
		}
		if err := c.cast(dst); err != nil {
			return err
		}
	}
	if !slices.Equal(oldBlocks, next.blocks()) { // a position within a cycle means nothing to another state
		if b, ok := next.env.Blocks[optim.BlockPhase]; ok {
			clear(b.U)
		}
	}
	return nil
}

// present goes back to round p.At and views the survivors' rows of the last epoch.
func (w *Worker) present(p message.Plan, old *optim.Env) error {
	if w.now == nil {
		return fmt.Errorf("worker %d is counted among the survivors of membership epoch %d but holds no blocks", w.cfg.ID, p.Base)
	}
	if err := w.now.restore(p.At); err != nil {
		return fmt.Errorf("worker %d: %w", w.cfg.ID, err)
	}
	shared := w.now.shared()
	for name, m := range w.now.env.Blocks {
		if !shared[name] && len(old.Mine) != m.Rows { // verify hosts lost members too: drop their rows
			kept := engine.New(len(old.Mine), m.Cols, m.Type)
			for i, id := range old.Mine {
				if err := engine.CopyHost(engine.Span{Mat: kept, Row: engine.Row(i), Rows: 1, Hi: m.Cols}, engine.Span{Mat: m, Row: w.now.env.Row(id), Rows: 1, Hi: m.Cols}); err != nil {
					return err
				}
			}
			m = kept
		}
		old.Blocks[name] = m
	}
	return nil
}

func positionOf(e *optim.Env) timeline.Position {
	p := readProgress(e.Blocks[ProgressBlock].U)
	return timeline.Position{Round: p.Rounds, Epochs: p.Epochs, Steps: p.Steps}
}

// leave lets a program hand on what departing members carry. It works on copies: the plan may be abandoned.
func leave(ctx context.Context, alg *optim.Algorithm, old *optim.Env, k optim.Values, p message.Plan) error {
	l, ok := alg.Program.(optim.Leaver)
	var gone []optim.Member
	for _, m := range old.Roster.Members {
		if !p.New.Has(m) {
			gone = append(gone, m)
		}
	}
	if !ok || len(gone) == 0 || p.Algorithm != p.OldAlg {
		return nil
	}
	for name, m := range old.Blocks {
		old.Blocks[name] = m.Clone()
	}
	return l.Leave(ctx, old, k, gone)
}

// caster brings what the survivors agree on to workers that were not there.
type caster struct {
	ctx  context.Context
	comm *optim.Comm
	from int
	to   []int
}

func (c caster) cast(m engine.Mat) error {
	for _, to := range c.to {
		from := optim.Roster{Members: []optim.Member{0}, Owner: []int{c.from}}
		dest := optim.Roster{Members: []optim.Member{0}, Owner: []int{to}}
		dst := engine.Mat{Cols: m.Cols, Type: m.Type}
		if c.comm.Self == to {
			dst = m
		}
		src := engine.Mat{Cols: m.Cols, Type: m.Type}
		if c.comm.Self == c.from {
			src = m
		}
		if err := c.comm.MoveBetween(c.ctx, "reshape", from, dest, []optim.Edge{{From: 0, To: 0}}, src, dst); err != nil {
			return err
		}
	}
	return nil
}

// moveRows brings each surviving member's row of a block to its new host.
func moveRows(ctx context.Context, next *installed, left, to optim.Roster, b optim.Block, src, dst engine.Mat) error {
	var edges []optim.Edge
	for _, m := range to.Members {
		if left.Has(m) {
			edges = append(edges, optim.Edge{From: m, To: m})
		}
	}
	in := optim.Incoming(edges, to, next.env.Self)
	got := engine.New(len(in), b.Cols, b.Type)
	if src.Cols == 0 {
		src = engine.Mat{Cols: b.Cols, Type: b.Type}
	}
	if err := next.env.Comm.MoveBetween(ctx, "reshape", left, to, edges, src, got); err != nil {
		return err
	}
	for i, e := range in {
		if err := engine.CopyHost(engine.Span{Mat: dst, Row: next.env.Row(e.To), Rows: 1, Hi: b.Cols}, engine.Span{Mat: got, Row: engine.Row(i), Rows: 1, Hi: b.Cols}); err != nil {
			return err
		}
	}
	return nil
}

func without(a, b []int) []int {
	return slices.DeleteFunc(slices.Clone(a), func(x int) bool { return slices.Contains(b, x) })
}
