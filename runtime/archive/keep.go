package archive

import (
	"errors"
	"slices"

	"github.com/fxamacker/cbor/v2"

	"brood/runtime/axis"
	"brood/runtime/view"
)

// kept is the encoded form of a run before any [Join].
type kept struct {
	Name, Parent string
	ParentAt     uint64
	Settings     []Setting
	Rounds       uint64
	Met          string
	Figures      map[string]float64
	View         *view.View
	Ticks        []axis.Tick
	Candidates   bool
}

// MarshalCBOR encodes a run for a cache. The result is at most a few hundred kilobytes, whatever the size of the log.
func (r *Run) MarshalCBOR() ([]byte, error) {
	return cbor.Marshal(kept{
		r.Name, r.Parent, r.ParentAt, r.Settings, r.Rounds, r.Met, r.Figures, r.View, r.clock.Ticks, r.candidates,
	})
}

// UnmarshalCBOR decodes such a run. The caller sets Dir.
func (r *Run) UnmarshalCBOR(p []byte) error {
	var k kept
	if err := cbor.Unmarshal(p, &k); err != nil {
		return err
	}
	if k.View == nil || k.View.Config == nil || len(k.Ticks) == 0 {
		return errors.New("the cached run is invalid: read its log")
	}
	*r = Run{
		Name:       k.Name,
		Parent:     k.Parent,
		ParentAt:   k.ParentAt,
		Settings:   k.Settings,
		Rounds:     k.Rounds,
		Met:        k.Met,
		Figures:    k.Figures,
		View:       k.View,
		clock:      axis.Clock{Ticks: k.Ticks},
		candidates: k.Candidates,
	}
	return nil
}

// Set returns joined copies of runs. The runs remain unchanged and may be in other sets. The copies share the data that
// Join does not change.
func Set(runs []*Run) []*Run {
	set := make([]*Run, len(runs))
	for i, r := range runs {
		c := *r
		c.clock.Ticks = slices.Clone(r.clock.Ticks)
		set[i] = &c
	}
	Join(set)
	return set
}
