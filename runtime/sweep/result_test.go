package sweep

import (
	"math"
	"slices"
	"testing"

	"brood/runtime/archive"

	"brood/models/engine"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/view"
)

// over returns a finished trial with these records in its log.
func over(eta string, records ...event.Record) *Trial {
	t := &Trial{Point: []string{eta}, Label: "eta=" + eta, Seed: 1, State: Done, Tally: archive.NewTally()}
	for _, r := range records {
		t.Tally.Record(r)
	}
	return t
}

func probed(loss float64) event.Record {
	return event.Record{Points: &event.Points{Series: view.CentreLoss, Members: []engine.Member{engine.None},
		Values: []float64{loss}}}
}

func tested(percent float64) event.Record {
	return event.Record{Evaluation: &event.Evaluation{TestError: percent}}
}

// order returns the settings, best first.
func order(b *Batch, metric string, more bool) (out []string) {
	all := b.Results(metric, "test_error")
	Sort(all, metric, more)
	for _, r := range all {
		out = append(out, r.Point[0])
	}
	return out
}

// TestSorts: settings are sorted by their validation results, whatever their test errors. NaN is no figure, and comes
// after a setting with a diverged seed.
func TestSorts(t *testing.T) {
	b := &Batch{Trials: []*Trial{over("0.1", probed(0.5), tested(3)), over("0.2", probed(0.2), tested(9)),
		over("0.3", probed(math.NaN()), tested(1)), over("0.4", probed(0), tested(20)),
		over("0.5", probed(0)), {Point: []string{"0.5"}, Label: "eta=0.5", Seed: 2, State: Diverged}}}
	got, want := order(b, "centre_loss", false), []string{"0.4", "0.2", "0.1", "0.5", "0.3"}
	if !slices.Equal(got, want) {
		t.Errorf("sorted %q, want %q", got, want)
	}
	got, want = order(b, "centre_loss", true), []string{"0.1", "0.2", "0.4", "0.5", "0.3"}
	if !slices.Equal(got, want) {
		t.Errorf("with more as the better sorted %q, want %q", got, want)
	}
	if x := b.Results("test_error")[3].Figures["test_error"]; len(x) != 1 || x[1] != 20 {
		t.Errorf("the test error beside it is %v", x)
	}
}

// TestSortsByTarget: the epochs of a run that missed its target do not count as the epochs to meet it. The measurements
// at the last commit decide, not the recorded reason of the end.
func TestSortsByTarget(t *testing.T) {
	config := event.Record{Config: &event.Config{Limit: event.Limit{Target: "test_error=3", Epochs: 9}}}
	at := func(epochs float64) event.Record {
		return event.Record{Commit: &event.Commit{Progress: event.Progress{Epochs: epochs}}}
	}
	end := event.Record{State: &event.State{Phase: event.Finished, Reason: "what reached the target is not said here"}}
	b := &Batch{Trials: []*Trial{over("0.1", config, at(0.5), tested(3), at(1), tested(3.5), end),
		over("0.2", config, at(5), tested(3), end), over("0.3", config, at(4), tested(2))}}
	if got, want := order(b, TargetMetric, false), []string{"0.3", "0.2", "0.1"}; !slices.Equal(got, want) {
		t.Errorf("sorted %q, want %q", got, want)
	}
	for i, t := range b.Trials {
		t.Tally.Record(event.Record{Plan: &event.Plan{New: collective.Place(collective.IDs(2), []int{0})}})
		t.Tally.Sum.Samples = []uint64{2, 10, 8}[i]
	}
	if got, want := order(b, "node_samples", false), []string{"0.3", "0.2", "0.1"}; !slices.Equal(got, want) {
		t.Errorf("by the samples of a node sorted %q, want %q", got, want)
	}
	r := b.Results(TargetMetric)[0]
	if r.Missed != 1 || len(r.Numbers(TargetMetric)) != 0 || !math.IsInf(r.Figures[TargetMetric][1], 1) {
		t.Errorf("a run that missed its target is %+v", r)
	}
}
