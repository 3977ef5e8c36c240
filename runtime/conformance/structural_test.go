package conformance

import (
	"context"
	"testing"

	"brood/runtime/event"
)

// TestStructuralKnobs: a knob that adds or removes blocks is set during training, also within a cycle. No worker is
// lost, the log verifies, and the loss falls.
func TestStructuralKnobs(t *testing.T) {
	for _, c := range []struct {
		rig Rig
		set [][2]string
	}{
		{Rig{Algorithm: "parle"}, [][2]string{{"variant", "paper"}, {"variant", "arxiv"}, {"variant", "code"}, {"variant", "paper"}, {"variant", "arxiv"}}},
		{Rig{Algorithm: "dp-sgd"}.With("eta", "0.02"), [][2]string{{"optimiser", "muon"}, {"optimiser", "adamw"}, {"lengths", "fixed"}, {"optimiser", "muon"}, {"last", "adamw"}, {"lengths", "free"}, {"last", "muon"}, {"optimiser", "sgd"}}},
		{Rig{Algorithm: "parle"}.With("eta_in", "0.02").With("slice", "2"), [][2]string{{"optimiser", "muon"}, {"optimiser", "sgd"}, {"optimiser", "adam"}}},
		{Rig{Algorithm: "pesgd"}.With("period", "0.05").With("eta", "0.02"), [][2]string{{"optimiser", "muon"}, {"optimiser", "sgd"}}},
		{Rig{Algorithm: "bgd"}.With("groups", "4").With("slice", "1").With("eta", "0.02"), [][2]string{{"optimiser", "muon"}, {"optimiser", "sgd"}, {"optimiser", "adamw"}}},
		{Rig{Algorithm: "hybrid-es"}.With("groups", "2").With("tries", "2").With("judges", "16").With("eta", "0.02"), [][2]string{{"optimiser", "adamw"}, {"optimiser", "muon"}, {"optimiser", "sgd"}}},
		{Rig{Algorithm: "popsgd"}, [][2]string{{"mode", "non-blocking"}, {"code", "lattice8"}, {"mode", "blocking"}}},
		{Rig{Algorithm: "entropy-sgd"}.With("slice", "2"), [][2]string{{"ell", "7"}, {"ell", "2"}}},
		{Rig{Algorithm: "openai-es"}, [][2]string{{"optimiser", "sgd"}, {"distribution", "semi"}, {"optimiser", "adam"}, {"distribution", "chromosome"}}},
		{Rig{Algorithm: "parle"}.With("slice", "2"), [][2]string{{"ell", "7"}, {"ell", "2"}, {"slice", "1"}, {"ell", "1"}}},
	} {
		r := quick(c.rig)
		r.Members, r.Workers, r.Rounds, r.Seed = 4, 2, 240, 11 // for any number of commits
		commits, next := 0, 0
		lost, plans := 0, 0
		r.OnRecord = func(rec event.Record) []event.Command {
			switch {
			case rec.Alert != nil:
				lost++
				t.Logf("%s: %s", c.rig.Algorithm, rec.Alert.Text)
			case rec.Plan != nil:
				plans++
			case rec.Commit != nil:
				if commits++; commits%2 == 0 && next < len(c.set) {
					next++
					return []event.Command{{Set: []event.Setting{{Knob: c.set[next-1][0], Expr: c.set[next-1][1]}}}}
				}
			}
			return nil
		}
		o := run(t, r)
		if lost > 0 || plans < 2 {
			t.Errorf("%s, %v: %d alerts, %d plans", c.rig.Algorithm, c.set, lost, plans)
		}
		for _, rc := range o.Replies {
			if !rc.Accepted {
				t.Errorf("%s: %s", c.rig.Algorithm, rc.Reason)
			}
		}
		if _, err := r.Verify(context.Background(), o); err != nil {
			t.Errorf("%s, %v: %v", c.rig.Algorithm, c.set, err)
		}
		if _, loss := o.Series("loss"); len(loss) > 0 && loss[len(loss)-1] > 2*loss[0] {
			t.Errorf("%s, %v: loss went from %.3f to %.3f", c.rig.Algorithm, c.set, loss[0], loss[len(loss)-1])
		}
	}
}
