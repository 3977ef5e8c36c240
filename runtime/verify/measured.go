package verify

import (
	"fmt"
	"math"
	"reflect"
	"slices"

	"brood/models/engine"
	"brood/runtime/event"
	"brood/runtime/message"
)

// measurements holds the points and evaluations that the execution of a commit produced: points by round and series,
// evaluations by round.
type measurements struct {
	points      map[measurement]*event.Points
	evaluations map[uint64]event.Evaluation
}

type measurement struct {
	round  uint64
	series string
}

// measured collects the measurements in the report of a worker that hosts all members. tests and held are the numbers
// of test and validation samples.
func measured(d message.Done, tests, held int) measurements {
	m := measurements{map[measurement]*event.Points{}, map[uint64]event.Evaluation{}}
	for _, p := range message.MergePoints([]message.Done{d}) {
		m.points[measurement{p.Round, p.Series}] = p
	}
	for _, t := range d.Tests {
		if e, ok := message.Tally([]message.Test{t}, tests, held); ok {
			m.evaluations[e.Round] = e
		}
	}
	return m
}

// points compares a record of points with the execution. It counts a record as unmatched if the execution did not
// produce it: the execution may lack the end of the run, and points about the workers of the run are not executed.
func (v *walk) points(p event.Points) error {
	got, ok := v.given.points[measurement{p.Round, p.Series}]
	if !ok {
		v.res.Unmatched++
		return nil
	}
	what := "series " + p.Series
	if !slices.Equal(p.Members, got.Members) {
		return &MismatchError{
			Round: p.Round,
			What:  "the members of " + what,
			Got:   fmt.Sprint(got.Members),
			Want:  fmt.Sprint(p.Members),
		}
	}
	for i := range max(len(p.Values), len(got.Values)) {
		if i >= len(p.Values) || i >= len(got.Values) || !equal(p.Values[i], got.Values[i]) {
			if i < len(p.Members) && i < len(p.Values) && p.Members[i] != engine.None {
				what += fmt.Sprintf(" of member %d", p.Members[i])
			}
			return &MismatchError{
				Round: p.Round,
				What:  what,
				Got:   fmt.Sprint(got.Values[min(i, len(got.Values)-1)]),
				Want:  fmt.Sprint(p.Values[min(i, len(p.Values)-1)]),
			}
		}
	}
	v.res.Points++
	return nil
}

// equal reports whether two values are equal. NaN equals NaN.
func equal(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }

// evaluation compares a recorded score on the test set with the execution. It counts a record as unmatched if the
// execution did not produce it.
func (v *walk) evaluation(e event.Evaluation) error {
	got, ok := v.given.evaluations[e.Round]
	if !ok {
		v.res.Unmatched++
		return nil
	}
	same := sameScores(testScores(got), testScores(e)) && reflect.DeepEqual(got.Episode, e.Episode) &&
		got.Centre == e.Centre
	if e.Validation != nil && got.Validation != nil { // older logs have none
		same = same && sameScores(*got.Validation, *e.Validation)
	}
	if !same {
		return &MismatchError{Round: e.Round, What: "the test evaluation", Want: score(e), Got: score(got)}
	}
	v.res.Evaluations++
	return nil
}

func testScores(e event.Evaluation) event.Scores {
	return event.Scores{Error: e.TestError, Loss: e.TestLoss, Samples: e.Samples, Squares: e.Squares}
}

func sameScores(a, b event.Scores) bool {
	return equal(a.Error, b.Error) && equal(a.Loss, b.Loss) && equal(a.Squares, b.Squares) && a.Samples == b.Samples
}

func score(e event.Evaluation) string {
	text := scoresText(testScores(e))
	if e.Validation != nil {
		text += ", on validation samples " + scoresText(*e.Validation)
	}
	return text + fmt.Sprintf(", centre %.20s", e.Centre)
}

func scoresText(s event.Scores) string {
	return fmt.Sprintf("error %.4g %%, loss %.17g on %d samples", s.Error, s.Loss, s.Samples)
}
