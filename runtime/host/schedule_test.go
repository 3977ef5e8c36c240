package host

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"brood/optim/coupled"
	"brood/runtime/event"
)

// TestScheduledKnobs: a new run applies and records the default schedule of a knob, unless the preset or the user sets
// the knob.
func TestScheduledKnobs(t *testing.T) {
	gamma, _ := coupled.Parle.Knob("gamma")
	set := []event.Setting{{Knob: "gamma", Expr: "7"}}
	for _, c := range []struct {
		o        Options
		expr, by string
	}{
		{Options{}, gamma.Schedule, event.ByDefault},
		{Options{Base: set}, "7", "preset"},
		{Options{Set: set, By: "flag"}, "7", "flag"},
	} {
		var got []event.Edit
		for _, e := range Edits(coupled.Parle, c.o) {
			if e.Knob == "gamma" {
				got = append(got, e)
			}
		}
		if len(got) != 1 || got[0].Expr != c.expr || got[0].By != c.by {
			t.Errorf("%+v: %+v, want gamma = %s by %s", c.o, got, c.expr, c.by)
		}
	}
}

// TestScaleOfALiveSchedule: schedules that are scaled while the run trains, in rounds from the start and in epochs from
// the middle, are in the log with where they began. The run is stopped after the command and resumed. Its session
// verifies, and ends with the hash of a fork from the round of the command that gives the same command.
func TestScaleOfALiveSchedule(t *testing.T) {
	ctx := t.Context()
	commands := [][]event.Setting{{{Knob: "eta", Expr: "exp:0.1*0.999/epoch"}},
		{{Knob: "gamma", Expr: "*0.8"}, {Knob: "eta", Expr: "/2"}}}
	dir := filepath.Join(t.TempDir(), "live")
	var edits []event.Edit
	progress, sent, next := map[uint64]float64{}, 0, uint64(50)
	train(t, dir, prepare(t, tiny(1<<40)), nil, func(r *Run, rec event.Record) {
		if rec.Edit != nil && rec.Edit.Commanded() {
			edits, next = append(edits, *rec.Edit), rec.Edit.At+20
		}
		if rec.Commit == nil {
			return
		}
		progress[rec.Commit.To] = rec.Commit.Progress.Epochs
		switch {
		case rec.Commit.To < next:
		case sent < len(commands) && (sent == 0 || len(edits) > 0):
			set := commands[sent]
			sent++
			go func() {
				if rc, err := r.Command(ctx, event.Command{Set: set, By: "test"}); err != nil || !rc.Accepted {
					t.Errorf("%+v, %v", rc, err)
				}
			}()
		case len(edits) == 3:
			stopAt(0)(r, rec)
		}
	})
	if len(edits) != 3 {
		t.Fatalf("the edits in the log: %+v", edits)
	}
	at := edits[1].At
	eta := fmt.Sprintf("exp:0.1*0.999/epoch,from%ge,x0.5", progress[edits[0].At])
	if g := edits[1]; !strings.HasSuffix(g.Expr, "/round..1,from0,x0.8") || edits[2].Expr != eta ||
		g.Typed != "exp:100*(1-1/(2B))/cycle..1,from0,x0.8" || progress[edits[0].At] == 0 {
		t.Errorf("the edits in the log: %+v, want eta = %s", edits, eta)
	}
	from, err := Restore(ctx, dir, 0, nil, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	whole := from.Checkpoint.Round + 100
	if err := from.Continue(Options{Workers: 2, Threads: 1, Limit: event.Limit{Rounds: whole}}); err != nil {
		t.Fatal(err)
	}
	hash := train(t, dir, from.Job, from, nil)
	if res, err := Verify(ctx, dir, 1, nil); err != nil || res.Rounds != whole || res.Last.Hash != hash {
		t.Errorf("verify: %+v, %v; the run ends as %s", res, err, hash)
	}
	fork := func(name string, set []event.Setting) string {
		return runOrder(t, Order{Dir: dir + name, From: dir, At: at,
			Options: Options{By: "test", Threads: 1, Limit: event.Limit{Rounds: whole}, Set: set}}, nil)
	}
	if same := fork("-same", commands[1]); same != hash {
		t.Errorf("scaled at round %d the run ends as %s, a fork with the same command as %s", at, hash, same)
	}
	if other := fork("-other", nil); other == hash {
		t.Error("a fork without the command ends as the run: scaling has no effect")
	}
	if _, err := Verify(ctx, dir+"-same", 1, nil); err != nil {
		t.Errorf("verify of the fork: %v", err)
	}
}
