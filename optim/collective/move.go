package collective

import (
	"context"
	"fmt"

	"brood/models/engine"
)

// Incoming returns the edges that end at a member hosted by worker w, in the order of Move's dst rows.
func Incoming(edges []Edge, to Roster, w int) (in []Edge) {
	for _, e := range edges {
		if to.Of(e.To) == w {
			in = append(in, e)
		}
	}
	return
}

// reach is the range from the first to the last of some ascending members. It excludes nearly all of thousands of
// members from a worker's lookup in two comparisons.
type reach struct{ first, last engine.Member }

// reachOf returns the reach of ascending members; without members, an empty range.
func reachOf(members []engine.Member) reach {
	if len(members) == 0 {
		return reach{1, 0}
	}
	return reach{members[0], members[len(members)-1]}
}

func (r reach) has(m engine.Member) bool { return r.first <= m && m <= r.last }

// touching returns the edges that may begin at a member of from or end at a member of to. It compares ranges only, so
// the result may contain other edges, but it omits none of these.
func touching(edges []Edge, from, to []engine.Member) (out []Edge) {
	begin, end := reachOf(from), reachOf(to)
	for _, e := range edges {
		if begin.has(e.From) || end.has(e.To) {
			out = append(out, e)
		}
	}
	return out
}

// Move sends rows along edges. Every worker must pass the same edges in the same order. src has a row for each member
// hosted here; row i of dst receives the row of the source of this worker's i-th incoming edge. A row is sent to a
// worker only once, however many of its members receive it; rows that remain on a worker are not sent. dst must not
// share memory with src.
func (c *Comm) Move(ctx context.Context, op Op, edges []Edge, src, dst engine.Mat) error {
	return c.MoveBetween(ctx, op, c.Roster, c.Roster, edges, src, dst)
}

// MoveBetween is Move from one roster to another: src rows follow from, dst rows follow to.
func (c *Comm) MoveBetween(ctx context.Context, op Op, from, to Roster, edges []Edge, src, dst engine.Mat) error {
	var stay []engine.Task
	m := mover{width: 4 * max(src.Cols, dst.Cols), rows: dst.Rows,
		fetch: func(r engine.Row) ([]byte, error) { return c.fetch(ctx, nil, engine.RowOf(src, r), engine.Float32) },
		put:   func(r engine.Row, p []byte) error { return c.Engine.Write(ctx, engine.RowOf(dst, r), p) },
		keep: func(to, from engine.Row) error {
			stay = append(stay, engine.Copy{Dst: engine.RowOf(dst, to), Src: engine.RowOf(src, from)})
			return nil
		}}
	if err := c.move(ctx, op, from, to, edges, m); err != nil {
		return err
	}
	return c.Engine.Do(ctx, stay...)
}

// MoveRecords is Move for records in host memory.
func (c *Comm) MoveRecords(ctx context.Context, op Op, edges []Edge, src, dst engine.Host) error {
	return c.MoveRecordsBetween(ctx, op, c.Roster, c.Roster, edges, src, dst)
}

// MoveRecordsBetween is MoveBetween for records in host memory. It fails if src and dst differ in type.
func (c *Comm) MoveRecordsBetween(ctx context.Context, op Op, from, to Roster, edges []Edge, src,
	dst engine.Host) error {
	put := func(r engine.Row, p []byte) error { engine.ReadRow(dst, r, p); return nil }
	fetch := func(r engine.Row) ([]byte, error) { return engine.AppendRows(nil, src, r, 1), nil }
	m := mover{width: max(src.Cols, dst.Cols) * dst.Type.Size(), rows: dst.Rows, fetch: fetch, put: put,
		keep: func(to, from engine.Row) error { return put(to, engine.AppendRows(nil, src, from, 1)) }}
	if src.Rows > 0 && dst.Rows > 0 && src.Type != dst.Type {
		return fmt.Errorf("%s: move rows of %s into rows of %s", op, src.Type, dst.Type)
	}
	return c.move(ctx, op, from, to, edges, m)
}

// mover defines how move reads and writes rows of one kind.
type mover struct {
	width, rows int // bytes of a row, and number of destination rows
	fetch       func(r engine.Row) ([]byte, error)
	put         func(r engine.Row, p []byte) error
	keep        func(to, from engine.Row) error // copies a row between two members of this worker
}

func (c *Comm) move(ctx context.Context, op Op, from, to Roster, edges []Edge, m mover) error {
	mine, next := c.hosted(from), c.hosted(to)
	type parcel struct {
		m engine.Member
		w int
	}
	shipped, here := map[parcel]bool{}, touching(edges, mine, next)
	for _, e := range here {
		src := RowAmong(mine, e.From)
		if src < 0 {
			continue
		}
		b := to.Of(e.To)
		if p := (parcel{e.From, b}); b != c.Self && !shipped[p] {
			shipped[p] = true
			row, err := m.fetch(src)
			if err == nil {
				err = c.send(b, op, row)
			}
			if err != nil {
				return err
			}
		}
	}
	i, got := engine.Row(0), map[engine.Member][]byte{}
	for _, e := range here {
		if RowAmong(next, e.To) < 0 {
			continue
		}
		if int(i) >= m.rows {
			return fmt.Errorf("%s: %d rows for more incoming edges", op, m.rows)
		}
		var err error
		if src := RowAmong(mine, e.From); src >= 0 {
			err = m.keep(i, src)
		} else {
			p, ok := got[e.From]
			if !ok {
				if p, err = c.recv(ctx, from.Of(e.From), op, m.width); err != nil {
					return err
				}
				got[e.From] = p
			}
			err = m.put(i, p)
		}
		if err != nil {
			return err
		}
		i++
	}
	return nil
}

func EveryNth(edges []Edge, n int) (out []Edge) {
	for i := 0; i < len(edges); i += n {
		out = append(out, edges[i])
	}
	return out
}

// Op names a communication operation in the ledger.
type Op string

// Edge is a directed transfer between members.
type Edge struct {
	From, To engine.Member
	Op       Op
}
