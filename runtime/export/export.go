// Package export exports the measurements of recorded runs as a table, in formats that other tools read. It folds logs
// as package archive does, so that its figures equal those of the screens, and keeps every round.
//
//	run, err := export.Read(dir)
//	table := export.Rounds([]*export.Run{run})
//	err = export.CSV(w, table)
package export

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"brood/runtime/archive"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/catalog"
	"brood/runtime/axis"
	"brood/runtime/event"
	"brood/runtime/session"
	"brood/runtime/timeline"
	"brood/runtime/view"
)

// Run is a recorded run with the measurements of every committed round.
type Run struct {
	*archive.Run
	records uint64  // number of records read from the log
	rounds  uint64  // number of committed rounds
	backs   []back  // in the order of the log
	spans   []span  // ascending
	tracks  []track // in the order of their first measurement
	begun   int64   // time of the first record, in Unix nanoseconds
	ended   int64   // time of the last record, in Unix nanoseconds
}

// back is a plan at the given index of the log. The rounds after round were rolled back, or were not committed, and are
// executed again.
type back struct{ record, round uint64 }

// span is a sequence of rounds with one algorithm and population: those after the round after, up to the next span.
type span struct {
	after            uint64
	algorithm        string
	members, workers int
	edits            []event.Edit
	line             *timeline.Timeline // nil for an algorithm of another version
}

// track holds the values of one quantity of the whole population, ascending by round.
type track struct {
	name string
	at   []sample
}

type sample struct {
	round uint64
	when  int64 // time of its record, in Unix nanoseconds
	x     float64
}

// Read folds the log of the session in dir, up to the last committed round. It fails if the session cannot be read or
// has no committed round.
func Read(dir string) (*Run, error) {
	r := &Run{}
	if err := r.outline(dir); err != nil {
		return nil, err
	}
	if r.rounds == 0 || len(r.spans) == 0 {
		return nil, fmt.Errorf("session %s %w: there is nothing to export", filepath.Base(dir), archive.ErrNoRound)
	}
	var err error
	if r.Run, err = archive.Read(dir); err != nil { // reads at least the records read above
		return nil, err
	}
	for i := range r.spans {
		r.spans[i].resolve(r)
	}
	return r, r.measure()
}

// each calls take with the first until records of the log of the session in dir, and their indexes. It stops at the
// first error.
func each(dir string, until uint64, take func(n uint64, rec *event.Record) error) error {
	n := uint64(0)
	for rec, err := range session.Records(dir) {
		if n == until {
			break
		}
		if err == nil {
			err = take(n, &rec)
		}
		if err != nil {
			return err
		}
		n++
	}
	return nil
}

// outline reads the log and sets the committed rounds of r, and their algorithms and populations: all fields except
// Run, tracks and the lines of spans.
func (r *Run) outline(dir string) error {
	done := false
	err := each(dir, math.MaxUint64, func(n uint64, rec *event.Record) error {
		if r.records = n + 1; n == 0 {
			r.begun = rec.At
		}
		r.ended = max(r.ended, rec.At)
		switch {
		case rec.Plan != nil:
			p := rec.Plan
			r.backs = append(r.backs, back{n, p.At})
			r.rounds = p.At
			r.spans = slices.DeleteFunc(r.spans, func(s span) bool { return s.after >= p.At })
			r.spans = append(r.spans, span{
				after:     p.At,
				algorithm: p.Algorithm,
				members:   len(p.New.Members),
				workers:   len(p.New.Workers()),
				edits:     slices.Clone(p.Timeline),
			})
		case rec.Edit != nil && len(r.spans) > 0:
			s := &r.spans[len(r.spans)-1]
			if !slices.ContainsFunc(s.edits, rec.Edit.Same) {
				s.edits = append(s.edits, *rec.Edit)
			}
		case rec.Commit != nil:
			r.rounds, done = rec.Commit.To, true
		}
		return nil
	})
	if !done {
		r.rounds = 0
	}
	return err
}

// resolve parses the edits of the span. The clock of the run converts their rounds to epochs and steps.
func (s *span) resolve(r *Run) {
	alg, err := catalog.Lookup(s.algorithm)
	if err != nil {
		return
	}
	s.line, _ = timeline.New(alg, nil)
	for _, e := range s.edits {
		if e.At > 0 && e.Epochs == 0 && e.Steps == 0 {
			p := r.position(e.At)
			e.Epochs, e.Steps = p.Epochs, p.Steps
		}
		_ = s.line.Add(e) // omit an edit of another version, as screens do
	}
}

// position returns the position of the run after this many rounds.
func (r *Run) position(round uint64) timeline.Position {
	return timeline.Position{Round: round, Epochs: r.At(axis.Epochs, round),
		Steps: uint64(math.Round(r.At(axis.Steps, round)))}
}

// span returns the span of a round.
func (r *Run) span(round uint64) *span {
	i, _ := slices.BinarySearchFunc(r.spans, round, func(s span, round uint64) int { return cmp.Compare(s.after, round) })
	return &r.spans[max(0, i-1)] // span i is the first that begins at the round or later
}

// algorithms returns the algorithms of the run, in their order, without duplicates.
func (r *Run) algorithms() (out []*optim.Algorithm) {
	for _, s := range r.spans {
		if a, err := catalog.Lookup(s.algorithm); err == nil && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

// points calls take with the measurements of the committed rounds that were not rolled back, in the order of the log.
// Test scores become series. when is in Unix nanoseconds.
func (r *Run) points(take func(when int64, p *event.Points) error) error {
	keep, next := make([]uint64, len(r.backs)+1), 0
	keep[len(r.backs)] = r.rounds
	for i := len(r.backs) - 1; i >= 0; i-- {
		keep[i] = min(keep[i+1], r.backs[i].round)
	}
	return each(r.Dir, r.records, func(n uint64, rec *event.Record) error {
		for next < len(r.backs) && r.backs[next].record <= n {
			next++
		}
		switch {
		case rec.Points != nil && rec.Points.Round <= keep[next]:
			return take(rec.At, rec.Points)
		case rec.Evaluation != nil && rec.Evaluation.Round <= keep[next]:
			e := rec.Evaluation
			whole := []engine.Member{view.Whole}
			var errs []error
			for _, s := range r.View.Config.Scores() {
				if s.Series != view.TestLoss {
					errs = append(errs, take(rec.At, &event.Points{
						Round:   e.Round,
						Series:  s.Series,
						Members: whole,
						Values:  []float64{s.Of(e)},
					}))
				}
			}
			errs = append(errs, take(rec.At, &event.Points{
				Round:   e.Round,
				Series:  view.TestLoss,
				Members: whole,
				Values:  []float64{e.TestLoss},
			}))
			if e.Validation != nil {
				for _, s := range r.View.Config.ValidationScores() {
					errs = append(errs, take(rec.At, &event.Points{
						Round:   e.Round,
						Series:  s.Series,
						Members: whole,
						Values:  []float64{s.Of(e)},
					}))
				}
			}
			return errors.Join(errs...)
		}
		return nil
	})
}

// named lists the series whose values are member ids. Only the table of members has them.
var named = []string{view.Partner, view.Parent}

// Suffixes of the columns of a series that has a value for each member. The one without a suffix is the median.
const (
	least = ".min"
	most  = ".max"
)

// measure fills the tracks.
func (r *Run) measure() error {
	index := map[string]int{}
	put := func(name string, s sample) {
		i, ok := index[name]
		if !ok {
			i = len(r.tracks)
			index[name], r.tracks = i, append(r.tracks, track{name: name})
		}
		at := r.tracks[i].at
		if n := len(at); n > 0 && at[n-1].round == s.round {
			at[n-1] = s
			return
		}
		r.tracks[i].at = append(at, s)
	}
	var finite []float64
	err := r.points(func(when int64, p *event.Points) error {
		n := min(len(p.Members), len(p.Values))
		if slices.Contains(named, p.Series) || n == 0 {
			return nil
		}
		if p.Members[0] == view.Whole {
			put(p.Series, sample{p.Round, when, p.Values[0]})
			return nil
		}
		finite = finite[:0]
		for _, x := range p.Values[:n] {
			if !math.IsNaN(x) && !math.IsInf(x, 0) {
				finite = append(finite, x)
			}
		}
		lo, middle, hi := math.NaN(), view.Median(finite), math.NaN()
		if len(finite) > 0 {
			lo, hi = finite[0], finite[len(finite)-1] // Median sorts its argument
		}
		put(p.Series, sample{p.Round, when, middle})
		put(p.Series+least, sample{p.Round, when, lo})
		put(p.Series+most, sample{p.Round, when, hi})
		return nil
	})
	for _, t := range r.tracks {
		slices.SortStableFunc(t.at, func(a, b sample) int { return cmp.Compare(a.round, b.round) })
	}
	return err
}
