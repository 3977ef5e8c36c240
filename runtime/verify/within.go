package verify

import (
	"context"
	"fmt"
	"math"
	"strings"

	"brood/models/engine"
	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/runtime/worker"
)

// Tolerance has a walk compare saved parameters with those that it reaches, in place of hashes. It is for programs of
// the user whose results vary, or that were recorded on another device. The walk restores each saved state, so that
// errors do not add up over the run. Other blocks, such as moments, are not compared: they are made of the gradients
// that vary.
type Tolerance struct {
	MaxError float64 // as a share of the distance of the saved parameters from those of the start
	Store    *Capture
	Saved    []event.Checkpoint // checkpoints of the log with intact files
}

// Capture is a store from which a walk reads saved states and in which it keeps its own parameters, in memory. The
// Worker of a walk with a Tolerance has it.
type Capture struct {
	worker.Store // loads checkpoints
	rows         map[string]engine.Host
}

// isParameters reports whether a row is parameters of a member or of the centre.
func isParameters(row string) bool {
	block, _, _ := strings.Cut(row, "/")
	return block == optim.BlockX || block == optim.BlockXBar
}

// Save implements [worker.Store].
func (c *Capture) Save(_ uint64, _ uint32, _ int, rows []worker.Row) (f event.File, err error) {
	c.rows = map[string]engine.Host{}
	for _, r := range rows {
		if !isParameters(r.Name) {
			continue
		}
		m := engine.NewHost(1, r.Cols, engine.F32)
		p := make([]byte, m.Bytes())
		if err := r.Pull(p, 0); err != nil {
			return f, err
		}
		engine.ReadFloats(m.F, p)
		c.rows[r.Name] = m
	}
	return f, nil
}

// Closeness is what a walk with a [Tolerance] found.
type Closeness struct {
	Segments     int     // that were executed, each from a saved state, or the start, to the next
	LargestError float64 // as a share of the distance of the saved parameters from those of the start
	Round        uint64  // of the saved state with it
	Compared     uint64  // the last round whose parameters were compared
}

// DistanceError reports parameters that are further from the recorded ones than the tolerance.
type DistanceError struct {
	Round           uint64
	Share, MaxError float64
}

func (e *DistanceError) Error() string {
	return fmt.Sprintf("round %d: the parameters differ from the recorded ones by %.2g of the distance that the run "+
		"moved from its start, and %g was allowed", e.Round, e.Share, e.MaxError)
}

// parameters returns the rows of parameters of the worker.
func (v *walk) parameters(ctx context.Context) (map[string]engine.Host, error) {
	switch r := v.w.Handle(ctx, message.Save{Epoch: v.epoch, At: v.at}).(type) {
	case message.Saved:
		if r.Err != "" {
			return nil, fmt.Errorf("round %d: %s", v.at, r.Err)
		}
		rows := v.cfg.Within.Store.rows
		v.cfg.Within.Store.rows = nil
		return rows, nil
	default:
		return nil, fmt.Errorf("round %d: there are no parameters to compare", v.at)
	}
}

// setStart remembers the parameters of the start, by whose distance errors are measured; of a later membership epoch,
// those of new members.
func (v *walk) setStart(ctx context.Context) error {
	if v.cfg.Within == nil {
		return nil
	}
	rows, err := v.parameters(ctx)
	if err != nil {
		return err
	}
	if v.start == nil {
		v.start = map[string]engine.Host{}
	}
	for name, row := range rows {
		if _, ok := v.start[name]; !ok {
			v.start[name] = row
		}
	}
	return nil
}

// compareSaved compares the parameters after a commit with the saved ones, if there are any, and restores the saved
// state.
func (v *walk) compareSaved(ctx context.Context) error {
	t := v.cfg.Within
	var cp *event.Checkpoint
	for i := range t.Saved {
		if t.Saved[i].Round == v.at && t.Saved[i].Epoch == v.epoch {
			cp = &t.Saved[i]
		}
	}
	if cp == nil {
		return nil
	}
	want, err := t.Store.Load(*cp, isParameters)
	if err != nil {
		return err
	}
	got, err := v.parameters(ctx)
	if err != nil {
		return err
	}
	apart, moved := 0.0, 0.0
	for name, w := range want {
		g, s := got[name], v.start[name]
		if len(g.F) != len(w.F) || len(s.F) != len(w.F) {
			return &MismatchError{
				Round: cp.Round,
				What:  "row " + name,
				Got:   fmt.Sprint(len(g.F), " elements"),
				Want:  fmt.Sprint(len(w.F), " elements"),
			}
		}
		apart += squaredDistance(g.F, w.F)
		moved += squaredDistance(s.F, w.F)
	}
	share := 0.0
	if apart != 0 {
		share = math.Sqrt(apart / moved)
	}
	if !(share <= t.MaxError) {
		return &DistanceError{cp.Round, share, t.MaxError}
	}
	c := &v.res.Within
	c.Segments++
	c.Compared = cp.Round
	if share > c.LargestError {
		c.LargestError, c.Round = share, cp.Round
	}
	v.keep(*cp)
	edits, most, hashes := v.edits, v.most, v.hashes
	err = v.plan(ctx, savedPlan(v.epoch, *cp))
	v.edits, v.most, v.hashes = edits, most, hashes
	return err
}

// squaredDistance returns the squared Euclidean distance of two rows; elements of equal bits do not count, so that a
// value that is not finite equals itself.
func squaredDistance(a, b []float32) (sum float64) {
	for i, x := range a {
		if math.Float32bits(x) != math.Float32bits(b[i]) {
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
