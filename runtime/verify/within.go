package verify

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"brood/models/engine"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/runtime/worker"
)

// Tolerance has a walk compare saved states with those that it reaches, in place of hashes. It is for programs of the
// user whose results vary, or that were recorded on another device. The walk goes on from each saved state, so errors
// do not add up over the run.
type Tolerance struct {
	Most  float64 // largest error, as a share of the distance that the run moved since the saved state before
	Store *Capture
	Saved []event.Checkpoint // those of the log whose files are there and intact
}

// Capture is a store from which a walk reads saved states and in which it keeps its own, in memory. The Worker of a
// walk with a Tolerance has it.
type Capture struct {
	worker.Store // loads checkpoints
	rows         map[string]engine.Host
}

// Save implements [worker.Store].
func (c *Capture) Save(_ uint64, _ uint32, _ int, rows []worker.Row) (f event.File, err error) {
	c.rows = make(map[string]engine.Host, len(rows))
	for _, r := range rows {
		m := r.Record.Clone()
		if r.Pull != nil {
			m = engine.NewHost(1, r.Cols, engine.F32)
			p := make([]byte, 4*r.Cols)
			if err := r.Pull(p, 0); err != nil {
				return f, err
			}
			engine.ReadFloats(m.F, p)
		}
		c.rows[r.Name] = m
	}
	return f, nil
}

// Closeness is what a walk with a [Tolerance] found.
type Closeness struct {
	Segments int     // from one saved state to the next that were executed
	Worst    float64 // the largest error, as a share of the distance that the run moved
	Block    string  // of it
	Round    uint64  // of the saved state with it
}

// DistanceError reports a state that is further from the recorded one than the tolerance.
type DistanceError struct {
	Closeness
	Since uint64 // the saved state before
	Most  float64
}

func (e *DistanceError) Error() string {
	return fmt.Sprintf("round %d: block %s differs from the recorded one by %.2g of the distance that it moved since round "+
		"%d, and %g was allowed", e.Round, e.Block, e.Worst, e.Since, e.Most)
}

// state returns the rows of the worker.
func (v *Walk) state(ctx context.Context) (map[string]engine.Host, error) {
	switch r := v.w.Handle(ctx, message.Save{Epoch: v.epoch, At: v.at}).(type) {
	case message.Saved:
		if r.Err != "" {
			return nil, fmt.Errorf("round %d: %s", v.at, r.Err)
		}
		return v.cfg.Within.Store.rows, nil
	default:
		return nil, fmt.Errorf("round %d: there is no state to compare", v.at)
	}
}

// begins remembers the state with which a membership epoch begins, unless a saved state came before.
func (v *Walk) begins(ctx context.Context) (err error) {
	if v.cfg.Within != nil && v.before == nil {
		v.before, err = v.state(ctx)
		v.since = v.at
	}
	return err
}

// within compares the state after a commit with the saved one, if there is one, and goes on from that.
func (v *Walk) within(ctx context.Context) error {
	t := v.cfg.Within
	i := slices.IndexFunc(t.Saved, func(cp event.Checkpoint) bool { return cp.Round == v.at && cp.Epoch == v.epoch })
	if i < 0 {
		return nil
	}
	cp := t.Saved[i]
	want, err := t.Store.Load(cp, func(string) bool { return true })
	if err != nil {
		return err
	}
	got, err := v.state(ctx)
	if err != nil {
		return err
	}
	apart, moved := map[string]float64{}, map[string]float64{}
	for name, w := range want {
		g, ok := got[name]
		if !ok || len(g.F) != len(w.F) || !slices.Equal(g.U, w.U) {
			return &MismatchError{Round: cp.Round, What: "row " + name, Got: fmt.Sprint(g.U), Want: fmt.Sprint(w.U)}
		}
		block, _, _ := strings.Cut(name, "/")
		apart[block] += squares(g.F, w.F)
		if b, ok := v.before[name]; ok && len(b.F) == len(w.F) {
			moved[block] += squares(b.F, w.F)
		}
	}
	c := &v.res.Within
	c.Segments++
	for _, block := range slices.Sorted(maps.Keys(apart)) {
		if apart[block] == 0 {
			continue
		}
		if e := math.Sqrt(apart[block] / moved[block]); !(e <= c.Worst) {
			c.Worst, c.Block, c.Round = e, block, cp.Round
		}
	}
	if !(c.Worst <= t.Most) {
		return &DistanceError{*c, v.since, t.Most}
	}
	v.before, v.since = want, cp.Round
	v.keep(cp)
	edits, most := v.edits, v.most
	err = v.plan(ctx, savedPlan(v.epoch, cp))
	v.edits, v.most = edits, most
	return err
}

// squares returns the squared distance of two rows; NaN equals NaN.
func squares(a, b []float32) (sum float64) {
	for i, x := range a {
		if math.Float32bits(x) != math.Float32bits(b[i]) && cmp.Compare(x, b[i]) != 0 {
			d := float64(x) - float64(b[i])
			sum += d * d
		}
	}
	return sum
}

// savedPlan returns the plan that restores a checkpoint.
func savedPlan(epoch uint32, cp event.Checkpoint) event.Plan {
	return event.Plan{
		Epoch:     epoch,
		At:        cp.Round,
		From:      event.Saved,
		Old:       cp.Roster,
		New:       cp.Roster,
		OldAlg:    cp.Algorithm,
		Algorithm: cp.Algorithm,
		Timeline:  cp.Timeline,
	}
}
