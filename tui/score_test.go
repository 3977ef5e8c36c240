package tui

import (
	"strings"
	"testing"

	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/view/sourcetest"
	"brood/tui/panel/live"
)

// TestNoEmptyPanel checks that a run on one worker has the score instead of the bandwidth, a wide screen both, and a
// run without a test set no score.
func TestNoEmptyPanel(t *testing.T) {
	lonely := func(rs []event.Record) []event.Record {
		for i, r := range rs {
			switch {
			case r.Plan != nil:
				p := *r.Plan
				p.New = collective.Place(p.New.Members, []int{0})
				rs[i].Plan = &p
			case r.Commit != nil:
				c := *r.Commit
				c.Sent, c.Predicted, c.Evaluation = nil, nil, nil
				rs[i].Commit = &c
			}
		}
		return rs
	}
	modelless := func(rs []event.Record) []event.Record {
		c := *rs[0].Config
		c.Data = ""
		rs[0].Config = &c
		return rs
	}
	for _, c := range []struct {
		name              string
		w                 int
		rs                []event.Record
		score, bandwidths bool
	}{
		{"three workers", 120, sourcetest.Run(6, 400), false, true},
		{"three workers, wide", 200, sourcetest.Run(6, 400), true, true},
		{"one worker", 80, lonely(sourcetest.Run(6, 400)), true, false},
		{"one worker, wide", 200, lonely(sourcetest.Run(6, 400)), true, false},
		{"no test set", 120, modelless(lonely(sourcetest.Run(6, 400))), false, true},
	} {
		d := open(t, c.w, 50, c.rs, nil)
		screen := d.theme.String(d.paint())
		if got := strings.Contains(screen, "─ test error %"); got != c.score {
			t.Errorf("%s: the score is shown: %v\n%s", c.name, got, screen)
		}
		if got := strings.Contains(screen, "─ bandwidth"); got != c.bandwidths {
			t.Errorf("%s: the bandwidth is shown: %v\n%s", c.name, got, screen)
		}
		if c.score && !strings.Contains(screen, "last 1.42 @200") {
			t.Errorf("%s: the last score is missing\n%s", c.name, screen)
		}
	}
}

// TestBandwidthShowsWaiting checks that the panel shows the share of time that workers wait for frames, if the log
// has it.
func TestBandwidthShowsWaiting(t *testing.T) {
	for waited, want := range map[int64]string{0: "", 3: "waiting 30 %"} {
		rs := sourcetest.Run(6, 400)
		for i := range rs {
			if c := rs[i].Commit; c != nil {
				with := *c
				with.Waited, with.Overhead = c.Nanos/10*waited, 100
				rs[i].Commit = &with
			}
		}
		for _, w := range []int{120, 200} {
			d := open(t, w, 50, rs, nil)
			if d.shows("bandwidth  per round", want); want == "" && strings.Contains(d.screenText(), "waiting") {
				t.Error("a log that does not count it says how long workers wait")
			}
		}
	}
}

// TestNoScoreText checks the message when the first score is expected.
func TestNoScoreText(t *testing.T) {
	for every, want := range map[uint64]string{250: "the test set is scored every 250 rounds",
		0: "the test set is scored at the end of each epoch"} {
		rs := sourcetest.Run(6, 400)
		c := *rs[0].Config
		c.Evaluate = every
		rs[0].Config = &c
		kept := rs[:0]
		for _, r := range rs {
			if r.Evaluation == nil && r.State == nil {
				kept = append(kept, r)
			}
		}
		d := open(t, 200, 50, kept, nil)
		if screen := strings.Join(strings.Fields(d.theme.String(d.paint())), " "); !strings.Contains(screen,
			want[:24]) {
			t.Errorf("%d: not on the screen: %s\n%s", every, want, screen)
		}
		if got := live.NoScoreText(d.model.Host); got != want {
			t.Errorf("%d: %q, want %q", every, got, want)
		}
	}
}

// TestScoreOfDistance checks that without classes the loss is the score, not an error of 100 %.
func TestScoreOfDistance(t *testing.T) {
	rs := sourcetest.Run(6, 400)
	for _, r := range rs {
		if r.Config != nil {
			r.Config.Loss = "distance"
		}
		if r.Evaluation != nil {
			r.Evaluation.TestError, r.Evaluation.TestLoss = 100, 604.25
		}
	}
	d := open(t, 120, 40, rs, nil)
	d.shows("test loss 604.2")
	for _, keys := range []string{"1", "7", "left"} {
		d.press(keys)
		if text := d.screenText(); strings.Contains(text, "100.0") || strings.Contains(text, "test error") {
			t.Errorf("after %s:\n%s", keys, text)
		}
	}
	d.shows("test loss")
}

// TestScoreInNarrowTerminal: the figures end within a terminal that is too narrow for panels.
func TestScoreInNarrowTerminal(t *testing.T) {
	open(t, 25, 10, sourcetest.Run(6, 400), nil).shows("centre loss      0.1008", "test error  1.42 % @200")
}
