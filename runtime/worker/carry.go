package worker

import (
	"context"
	"fmt"
	"maps"
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
	oldBlocks := timeline.BlocksAt(oldAlg, oldTime, p.At, w.cfg.Layout)
	survivors := left.Workers()
	had := slices.Contains(survivors, w.cfg.ID)
	everyone := append(slices.Clone(survivors), p.New.Workers()...)
	slices.Sort(everyone)
	everyone = slices.Compact(everyone)

	old := &departing{Env: w.environment(left, p.Epoch, survivors)}
	defer old.end()
	centre, err := w.cfg.Engine.Alloc(1, w.cfg.Layout.Params)
	if err != nil {
		return err
	}
	defer w.cfg.Engine.Free(centre)
	if had {
		if err := w.present(ctx, p, old); err != nil {
			return err
		}
		k := oldTime.Values(positionOf(old.Env))
		if err := old.leave(ctx, oldAlg, k, p); err != nil {
			return because(old.Env, err)
		}
		if err := oldAlg.Program.Centre(ctx, old.Env, k, centre); err != nil {
			return because(old.Env, err)
		}
	}
	next.env.Comm.Continue(old.Comm)
	next.env.Comm.Workers = everyone
	c := caster{ctx: ctx, comm: next.env.Comm, from: survivors[0], to: without(everyone, survivors)}
	if err := c.cast(centre); err != nil {
		return err
	}
	carried := []optim.Block{{Name: message.ProgressBlock, Shared: true, Cols: progCols, Type: engine.U64, Record: true}}
	for _, b := range next.blocks() {
		if err := w.enter(ctx, next.env, b, centre); err != nil {
			return err
		}
		if i := slices.IndexFunc(oldBlocks, func(o optim.Block) bool { return o.Name == b.Name }); i >= 0 {
			if o := oldBlocks[i]; o.Shared == b.Shared && o.Cols == b.Cols && o.Type == b.Type && o.Record == b.Record {
				carried = append(carried, b)
			}
		}
	}
	for _, b := range carried {
		var err error
		switch {
		case b.Record:
			err = c.record(left, p.New, b, next.env, old.Records[b.Name], had)
		case b.Shared:
			dst := next.env.Blocks[b.Name]
			if had {
				err = w.cfg.Engine.Do(ctx, engine.Copy{Dst: engine.All(dst), Src: engine.All(old.Blocks[b.Name])})
			}
			if err == nil {
				err = c.cast(dst)
			}
		default:
			err = moveRows(ctx, next.env, left, p.New, b, old.Blocks[b.Name])
		}
		if err != nil {
			return err
		}
	}
	if !slices.Equal(oldBlocks, next.blocks()) { // a position within a cycle means nothing to another state
		clear(next.env.Records[optim.BlockPhase].U)
	}
	return nil
}

// departing is the last epoch's blocks as a plan finds them: views of those in force, or copies of its own.
type departing struct {
	*optim.Env
	own []engine.Mat
}

// end gives the copies back.
func (d *departing) end() {
	for _, m := range d.own {
		d.Engine.Free(m)
	}
	d.Blocks = nil
	d.Free()
}

// copied is a copy of some rows of m.
func (d *departing) copied(ctx context.Context, m engine.Mat, rows []engine.Row) (engine.Mat, error) {
	c, err := d.Engine.Alloc(len(rows), m.Cols)
	if err != nil {
		return c, err
	}
	d.own = append(d.own, c)
	var tasks []engine.Task
	for i, r := range rows {
		tasks = append(tasks, engine.Copy{Dst: engine.RowOf(c, engine.Row(i)), Src: engine.RowOf(m, r)})
	}
	return c, d.Engine.Do(ctx, tasks...)
}

// present goes back to round p.At and views the survivors' rows of the last epoch.
func (w *Worker) present(ctx context.Context, p message.Plan, old *departing) error {
	if w.now == nil {
		return fmt.Errorf("worker %d is counted among the survivors of membership epoch %d but holds no blocks", w.cfg.ID, p.Base)
	}
	if err := w.now.restore(ctx, p.At); err != nil {
		return fmt.Errorf("worker %d: %w", w.cfg.ID, err)
	}
	shared := w.now.shared()
	var rows []engine.Row
	for _, id := range old.Mine {
		rows = append(rows, w.now.env.Row(id))
	}
	for name, m := range w.now.env.Records {
		if !shared[name] && len(rows) != m.Rows { // verify hosts lost members too: drop their rows
			kept := engine.NewHost(len(rows), m.Cols, m.Type)
			for i, r := range rows {
				kept.Sub(engine.Row(i), 1).Set(m.Sub(r, 1))
			}
			m = kept
		}
		old.Records[name] = m
	}
	for _, name := range slices.Sorted(maps.Keys(w.now.env.Blocks)) {
		m := w.now.env.Blocks[name]
		if !shared[name] && len(rows) != m.Rows {
			var err error
			if m, err = old.copied(ctx, m, rows); err != nil {
				return err
			}
		}
		old.Blocks[name] = m
	}
	return nil
}

func positionOf(e *optim.Env) timeline.Position {
	p := readProgress(e.Records[message.ProgressBlock].U)
	return timeline.Position{Round: p.Rounds, Epochs: p.Epochs, Steps: p.Steps}
}

// leave lets a program hand on what departing members carry. It works on copies: the plan may be abandoned.
func (d *departing) leave(ctx context.Context, alg *optim.Algorithm, k optim.Values, p message.Plan) error {
	l, ok := alg.Program.(optim.Leaver)
	var gone []optim.Member
	for _, m := range d.Roster.Members {
		if !p.New.Has(m) {
			gone = append(gone, m)
		}
	}
	if !ok || len(gone) == 0 || p.Algorithm != p.OldAlg {
		return nil
	}
	for name, m := range d.Records {
		d.Records[name] = m.Clone()
	}
	for _, name := range slices.Sorted(maps.Keys(d.Blocks)) {
		m, err := d.copied(ctx, d.Blocks[name], engine.Rows(d.Blocks[name].Rows))
		if err != nil {
			return err
		}
		d.Blocks[name] = m
	}
	return l.Leave(ctx, d.Env, k, gone)
}

// caster brings what the survivors agree on to workers that were not there.
type caster struct {
	ctx  context.Context
	comm *optim.Comm
	from int
	to   []int
}

// each calls move for every one of them, with rosters of one member that is here and there.
func (c caster) each(move func(from, to optim.Roster, edges []optim.Edge) error) error {
	for _, to := range c.to {
		at := func(w int) optim.Roster { return optim.Roster{Members: []optim.Member{0}, Owner: []int{w}} }
		if err := move(at(c.from), at(to), []optim.Edge{{From: 0, To: 0}}); err != nil {
			return err
		}
	}
	return nil
}

func (c caster) cast(m engine.Mat) error {
	return c.each(func(from, to optim.Roster, edges []optim.Edge) error {
		src, dst := engine.Mat{Cols: m.Cols}, engine.Mat{Cols: m.Cols}
		if c.comm.Self == from.Owner[0] {
			src = m
		}
		if c.comm.Self == to.Owner[0] {
			dst = m
		}
		return c.comm.MoveBetween(c.ctx, "reshape", from, to, edges, src, dst)
	})
}

// record is how a record that is kept comes to where it belongs now.
func (c caster) record(left, to optim.Roster, b optim.Block, next *optim.Env, src engine.Host, had bool) error {
	dst := next.Records[b.Name]
	none := engine.Host{Cols: b.Cols, Type: b.Type}
	if b.Shared {
		if had {
			dst.Set(src)
		}
		return c.each(func(from, to optim.Roster, edges []optim.Edge) error {
			here, there := none, none
			if c.comm.Self == from.Owner[0] {
				here = dst
			}
			if c.comm.Self == to.Owner[0] {
				there = dst
			}
			return c.comm.MoveRecordsBetween(c.ctx, "reshape", from, to, edges, here, there)
		})
	}
	if src.Cols == 0 {
		src = none
	}
	edges := survive(left, to)
	in := optim.Incoming(edges, to, next.Self)
	got := engine.NewHost(len(in), b.Cols, b.Type)
	if err := c.comm.MoveRecordsBetween(c.ctx, "reshape", left, to, edges, src, got); err != nil {
		return err
	}
	for i, e := range in {
		dst.Sub(next.Row(e.To), 1).Set(got.Sub(engine.Row(i), 1))
	}
	return nil
}

// survive is an edge for each member that stays.
func survive(left, to optim.Roster) (edges []optim.Edge) {
	for _, m := range to.Members {
		if left.Has(m) {
			edges = append(edges, optim.Edge{From: m, To: m})
		}
	}
	return edges
}

// moveRows brings each surviving member's row of a block to its new host.
func moveRows(ctx context.Context, next *optim.Env, left, to optim.Roster, b optim.Block, src engine.Mat) error {
	edges := survive(left, to)
	in := optim.Incoming(edges, to, next.Self)
	if src.Cols == 0 {
		src = engine.Mat{Cols: b.Cols}
	}
	got, err := next.Engine.Alloc(len(in), b.Cols)
	if err != nil {
		return fmt.Errorf("block %s: %w", b.Name, err)
	}
	defer next.Engine.Free(got)
	if err := next.Comm.MoveBetween(ctx, "reshape", left, to, edges, src, got); err != nil {
		return err
	}
	var tasks []engine.Task
	for i, e := range in {
		tasks = append(tasks, engine.Copy{Dst: engine.RowOf(next.Blocks[b.Name], next.Row(e.To)), Src: engine.RowOf(got, engine.Row(i))})
	}
	return next.Engine.Do(ctx, tasks...)
}

func without(a, b []int) []int {
	return slices.DeleteFunc(slices.Clone(a), func(x int) bool { return slices.Contains(b, x) })
}
