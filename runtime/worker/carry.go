package worker

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/collective"
	"brood/runtime/message"
	"brood/runtime/timeline"
)

// carryOver fills the blocks of a new epoch from those of the last one. The survivors compute the centre and send it to
// new workers. Blocks that are equal in name, scope, shape and type keep their rows, which move to their new hosts. All
// other rows are initialized as their block specifies. The call is collective over survivors and new workers.
func (w *Worker) carryOver(ctx context.Context, next *epochState, p message.Plan) error {
	left := p.Sources()
	if len(left.Members) == 0 {
		return fmt.Errorf("membership epoch %d: no member survived: roll back to a checkpoint", p.Epoch)
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

	old := &previous{Env: w.environment(left, p.Epoch, survivors)}
	defer old.release()
	centre, err := w.cfg.Engine.Alloc(1, w.cfg.Layout.Params)
	if err != nil {
		return err
	}
	defer w.cfg.Engine.Free(centre)
	if had {
		if err := w.loadPrevious(ctx, p, old); err != nil {
			return err
		}
		k := oldTime.Values(positionOf(old.Env))
		if err := old.handOver(ctx, oldAlg, k, p); err != nil {
			return rootCause(old.Env, err)
		}
		if err := oldAlg.Program.Centre(ctx, old.Env, k, centre); err != nil {
			return rootCause(old.Env, err)
		}
	}
	next.env.Comm.Continue(old.Comm)
	next.env.Comm.Workers = everyone
	c := broadcaster{ctx: ctx, comm: next.env.Comm, from: survivors[0], to: without(everyone, survivors)}
	if err := c.broadcast(centre); err != nil {
		return err
	}
	for _, b := range next.blocks() {
		if err := w.enter(ctx, next.env, b, centre); err != nil {
			return err
		}
	}
	for _, b := range carried(oldBlocks, next.blocks()) {
		var err error
		switch {
		case b.Record:
			err = c.moveRecord(left, p.New, b, next.env, old.Records[b.Name], had)
		case b.Shared:
			dst := next.env.Blocks[b.Name]
			if had {
				err = w.cfg.Engine.Do(ctx, engine.Copy{Dst: engine.All(dst), Src: engine.All(old.Blocks[b.Name])})
			}
			if err == nil {
				err = c.broadcast(dst)
			}
		default:
			err = moveRows(ctx, next.env, left, p.New, b, old.Blocks[b.Name])
		}
		if err != nil {
			return err
		}
	}
	// a position within a cycle is meaningless for another layout of the state
	if !slices.Equal(oldBlocks, next.blocks()) {
		clear(next.env.Records[optim.BlockPhase].U)
	}
	return nil
}

// carried returns the blocks that keep their rows in a new epoch: the progress, and the new blocks that equal an old
// one in name, scope, shape and type.
func carried(old, now []optim.Block) []optim.Block {
	out := []optim.Block{{Name: message.ProgressBlock, Shared: true, Cols: progCols, Type: engine.U64, Record: true}}
	for _, b := range now {
		if slices.ContainsFunc(old, func(o optim.Block) bool {
			return o.Name == b.Name && o.Shared == b.Shared && o.Cols == b.Cols && o.Type == b.Type && o.Record == b.Record
		}) {
			out = append(out, b)
		}
	}
	return out
}

// previous holds the last epoch's blocks for a plan: views of the blocks in effect, or copies.
type previous struct {
	*optim.Env
	copies []engine.Mat // copies, to be freed
}

// release frees the copies.
func (d *previous) release() {
	for _, m := range d.copies {
		d.Engine.Free(m)
	}
	d.Blocks = nil
	d.Free()
}

// copyRows returns a copy of rows of a block, which release frees. Row i is row rows[i].at of own, or of mirror.
func (d *previous) copyRows(ctx context.Context, own, mirror engine.Mat, rows []heldRow) (engine.Mat, error) {
	c, err := d.Engine.Alloc(len(rows), own.Cols)
	if err != nil {
		return c, err
	}
	d.copies = append(d.copies, c)
	var tasks []engine.Task
	for i, r := range rows {
		src := own
		if r.mirrored {
			src = mirror
		}
		tasks = append(tasks, engine.Copy{Dst: engine.RowOf(c, engine.Row(i)), Src: engine.RowOf(src, r.at)})
	}
	return c, d.Engine.Do(ctx, tasks...)
}

// heldRow is the row of a member that this worker holds: in its own blocks, or among the mirrors.
type heldRow struct {
	at       engine.Row
	mirrored bool
}

// held returns the rows of members that this worker holds, and whether they are all rows of its own blocks, in order.
func (s *epochState) held(members []engine.Member) (rows []heldRow, plain bool) {
	copied := s.env.Roster.Mirrors().Hosted(s.env.Self)
	plain = len(members) == len(s.env.Mine)
	for _, id := range members {
		r := heldRow{at: collective.RowAmong(s.env.Mine, id)}
		if r.at < 0 {
			r = heldRow{collective.RowAmong(copied, id), true}
			plain = false
		}
		rows = append(rows, r)
	}
	return rows, plain
}

// loadPrevious restores round p.At and fills old with the survivors' rows of the last epoch that this worker hosts.
func (w *Worker) loadPrevious(ctx context.Context, p message.Plan, old *previous) error {
	if w.now == nil {
		return fmt.Errorf("worker %d is listed as a survivor of membership epoch %d but holds no blocks", w.cfg.ID, p.Base)
	}
	if err := w.now.restore(ctx, p.At); err != nil {
		return fmt.Errorf("worker %d: %w", w.cfg.ID, err)
	}
	shared := w.now.shared()
	rows, plain := w.now.held(old.Mine) // plain is false for verify too, which hosts lost members
	mirror, ok := w.now.mirrors.at[p.At]
	if !ok && slices.ContainsFunc(rows, func(r heldRow) bool { return r.mirrored }) {
		return fmt.Errorf("worker %d has no mirror of round %d", w.cfg.ID, p.At)
	}
	for name, m := range w.now.env.Records {
		if !shared[name] && !plain {
			kept := engine.NewHost(len(rows), m.Cols, m.Type)
			for i, r := range rows {
				src := m
				if r.mirrored {
					src = mirror.records[name]
				}
				kept.Sub(engine.Row(i), 1).Set(src.Sub(r.at, 1))
			}
			m = kept
		}
		old.Records[name] = m
	}
	for _, name := range slices.Sorted(maps.Keys(w.now.env.Blocks)) {
		m := w.now.env.Blocks[name]
		if !shared[name] && !plain {
			var err error
			if m, err = old.copyRows(ctx, m, mirror.blocks[name], rows); err != nil {
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

// handOver lets a program use the state of departing members. It works on copies, since the plan may be abandoned.
func (d *previous) handOver(ctx context.Context, alg *optim.Algorithm, k optim.Values, p message.Plan) error {
	l, ok := alg.Program.(optim.Leaver)
	var gone []engine.Member
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
		rows := make([]heldRow, d.Blocks[name].Rows)
		for i := range rows {
			rows[i].at = engine.Row(i)
		}
		m, err := d.copyRows(ctx, d.Blocks[name], engine.Mat{}, rows)
		if err != nil {
			return err
		}
		d.Blocks[name] = m
	}
	return l.Leave(ctx, d.Env, k, gone)
}

// broadcaster sends what the survivors agree on to the workers that join.
type broadcaster struct {
	ctx  context.Context
	comm *collective.Comm
	from int   // sending worker
	to   []int // receiving workers
}

// each calls move for each receiver, with rosters that place one member 0 at the sender and at the receiver.
func (c broadcaster) each(move func(from, to collective.Roster, edges []collective.Edge) error) error {
	for _, to := range c.to {
		at := func(w int) collective.Roster { return collective.Roster{Members: []engine.Member{0}, Owner: []int{w}} }
		if err := move(at(c.from), at(to), []collective.Edge{{From: 0, To: 0}}); err != nil {
			return err
		}
	}
	return nil
}

// broadcast sends m, 1 row, from the sender to all receivers, in place.
func (c broadcaster) broadcast(m engine.Mat) error {
	return c.each(func(from, to collective.Roster, edges []collective.Edge) error {
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

// moveRecord moves the rows of a record that is carried over to their new hosts; a shared record goes to all receivers.
// had reports whether this worker is a survivor, whose rows are in src.
func (c broadcaster) moveRecord(
	left, to collective.Roster,
	b optim.Block,
	next *optim.Env,
	src engine.Host,
	had bool,
) error {
	dst := next.Records[b.Name]
	none := engine.Host{Cols: b.Cols, Type: b.Type}
	if b.Shared {
		if had {
			dst.Set(src)
		}
		return c.each(func(from, to collective.Roster, edges []collective.Edge) error {
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
	edges := survivorEdges(left, to)
	in := collective.Incoming(edges, to, next.Self)
	got := engine.NewHost(len(in), b.Cols, b.Type)
	if err := c.comm.MoveRecordsBetween(c.ctx, "reshape", left, to, edges, src, got); err != nil {
		return err
	}
	for i, e := range in {
		dst.Sub(next.Row(e.To), 1).Set(got.Sub(engine.Row(i), 1))
	}
	return nil
}

// survivorEdges returns an edge for each member that stays.
func survivorEdges(left, to collective.Roster) (edges []collective.Edge) {
	for _, m := range to.Members {
		if left.Has(m) {
			edges = append(edges, collective.Edge{From: m, To: m})
		}
	}
	return edges
}

// moveRows moves each surviving member's row of a block to its new host.
func moveRows(ctx context.Context, next *optim.Env, left, to collective.Roster, b optim.Block, src engine.Mat) error {
	edges := survivorEdges(left, to)
	in := collective.Incoming(edges, to, next.Self)
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
		dst := engine.RowOf(next.Blocks[b.Name], next.Row(e.To))
		tasks = append(tasks, engine.Copy{Dst: dst, Src: engine.RowOf(got, engine.Row(i))})
	}
	return next.Engine.Do(ctx, tasks...)
}

func without(a, b []int) []int {
	return slices.DeleteFunc(slices.Clone(a), func(x int) bool { return slices.Contains(b, x) })
}
