package replay

import (
	"slices"

	"brood/runtime/event"
	"brood/runtime/view"
)

// Kind is the kind of a mark, ascending by importance: where marks of several kinds meet, the last one is shown.
type Kind uint8

const (
	Evaluation Kind = iota + 1
	Checkpoint      // above evaluations, which are regular: a branch from here recomputes nothing
	Note            // of the user, on a round
	Edit            // of a knob, the algorithm or the population size
	Alert           // a warning or an error
)

// Mark is a point on the timeline of a run.
type Mark struct {
	Kind  Kind
	Round uint64
	At    view.Position // position after its record; 0: only the round is known
}

// maxEvaluations bounds the evaluations among the marks of a recording. It exceeds the columns of the widest terminal:
// a mark in every column would show nothing.
const maxEvaluations = 1 << 10

// Marks returns the marks found so far, by position. The caller must not modify them.
func (r *Replay) Marks() []Mark {
	r.scan.mu.Lock()
	defer r.scan.mu.Unlock()
	return slices.Clip(r.scan.marks)
}

// ViewMarks returns the marks of a view, in no order, without evaluations: the edits and alerts of the charts, and of
// the event list the alerts and checkpoints that it still has.
func ViewMarks(v *view.View) (out []Mark) {
	for _, k := range v.Marks {
		out = append(out, Mark{Kind: kindOfMark(k), Round: k.Round})
	}
	for _, e := range v.Lane {
		if k := kindOfEntry(e); k > 0 {
			out = append(out, Mark{Kind: k, Round: e.Round})
		}
	}
	return out
}

// mark adds the marks of a record that the view has applied, by the same rules as ViewMarks. The caller holds s.mu.
func (s *scan) mark(rec event.Record) {
	v := s.view
	add := func(k Kind, round uint64) { s.marks = append(s.marks, Mark{k, round, v.Position}) }
	if rec.Evaluation != nil && s.scored < maxEvaluations {
		s.scored++
		add(Evaluation, rec.Evaluation.Round)
	}
	newest := view.Mark{}
	if n := len(v.Marks); n > 0 {
		newest = v.Marks[n-1]
		newest.Effect = nil // which is known later than the mark
	}
	if newest != s.last {
		s.last = newest
		add(kindOfMark(s.last), s.last.Round)
	} else if n := len(v.Lane); n > 0 && v.Lane[n-1].At == v.Position-1 {
		if k := kindOfEntry(v.Lane[n-1]); k > 0 {
			add(k, v.Lane[n-1].Round)
		}
	}
}

func kindOfMark(k view.Mark) Kind {
	if k.Alert {
		return Alert
	}
	return Edit
}

// kindOfEntry returns the kind of an event; 0 if it has no mark, or one of the charts.
func kindOfEntry(e view.Entry) Kind {
	switch {
	case e.Level != event.LevelInfo:
		return Alert
	case e.Kind == view.KindCheckpoint:
		return Checkpoint
	}
	return 0
}
