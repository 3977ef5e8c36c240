package coordinator

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"brood/runtime/event"
	"brood/runtime/message"
)

// asks sends a command and returns its receipt.
func (p *testRun) asks(c event.Command) (r event.Receipt) {
	p.t.Helper()
	for _, x := range p.step(c) {
		if got, ok := x.(Receipt); ok {
			return got.Receipt
		}
	}
	p.t.Fatalf("no receipt of %+v", c)
	return r
}

// A schedule that would end before it takes effect is rejected. Relative positions are logged as rounds of the run.
func TestScheduleThatIsOver(t *testing.T) {
	p := newTestRun(t, 1, nil)
	for p.core.granted < 300 {
		p.round(nil)
	}
	set := func(expr string) event.Command {
		return event.Command{Set: []event.Setting{{Knob: "eta", Expr: expr}}}
	}
	if r := p.asks(set("cosine:0.1..0.001@200")); r.Accepted || !strings.Contains(r.Reason, "write @+200") {
		t.Errorf("a schedule that ended at round 200 is answered at round %d by %+v", p.core.granted, r)
	}
	if r := p.asks(set("cosine:0.1..0.001@+200")); !r.Accepted {
		t.Fatal(r.Reason)
	}
	for len(p.core.staged) > 0 {
		p.round(nil)
	}
	var logged event.Edit
	for _, r := range p.log {
		if r.Edit != nil {
			logged = *r.Edit
		}
	}
	want := fmt.Sprintf("cosine:0.1..0.001@%d", logged.At+200)
	if logged.Expr != want || logged.At < 300 {
		t.Errorf("the log has %q from round %d on, not %q", logged.Expr, logged.At, want)
	}
	for _, m := range p.sent[0] {
		if g, ok := m.(message.Grant); ok {
			for _, e := range g.Edits {
				if e.Expr != want {
					t.Errorf("the grant carries %q", e.Expr)
				}
			}
		}
	}
}

// A setting that names its algorithm does not set a knob of the same name of another algorithm, also while an accepted
// swap is not in effect yet.
func TestSettingOfAnotherAlgorithm(t *testing.T) {
	p := newTestRun(t, 1, nil)
	of := func(alg string) event.Receipt {
		return p.asks(event.Command{Set: []event.Setting{{Knob: "eta", Expr: "0.05"}}, Of: alg})
	}
	if r := of("parle"); !r.Accepted {
		t.Error(r.Reason)
	}
	if r := p.asks(event.Command{Algorithm: "elastic"}); !r.Accepted {
		t.Fatal(r.Reason)
	}
	if r := of("parle"); r.Accepted || r.Reason != "these knobs are of parle, and elastic takes over: nothing is set" {
		t.Errorf("with a pending swap: %+v", r)
	}
	for p.core.plan == nil {
		p.round(nil)
	}
	p.ready()
	if r := of("parle"); r.Accepted || p.core.alg.Name != "elastic" {
		t.Errorf("after the swap to %s: %+v", p.core.alg.Name, r)
	}
	if r := of("elastic"); !r.Accepted {
		t.Error(r.Reason)
	}
}

// TestReasons: the reason of a command is recorded with its edit, pause or plan. A reason that cannot be displayed is
// rejected.
func TestReasons(t *testing.T) {
	p := newTestRun(t, 1, nil)
	for p.core.granted < 10 {
		p.round(nil)
	}
	for _, bad := range []string{strings.Repeat("x", event.MaxWhy+1), "two\nlines", "\x1b[31mred", "\xff"} {
		if r := p.asks(event.Command{Why: bad, Set: []event.Setting{{Knob: "eta", Expr: "0.2"}}}); r.Accepted || !r.Usage ||
			!strings.Contains(r.Reason, "reason of the command") {
			t.Errorf("the reason %.20q is answered by %+v", bad, r)
		}
	}
	if r := p.asks(event.Command{By: "tuner", Why: "the loss is flat",
		Set: []event.Setting{{Knob: "eta", Expr: "0.2"}}}); !r.Accepted {
		t.Fatal(r.Reason)
	}
	for len(p.core.staged) > 0 {
		p.round(nil)
	}
	paused := p.core.granted
	if paused <= p.core.committed {
		t.Fatal("no round is in progress: a pause would take effect immediately")
	}
	for _, c := range []event.Command{{Why: "lunch", Action: event.Pause}, {Why: "back", Action: event.Resume},
		{Why: "more of them", Members: 6}} {
		c.By = "tuner"
		if r := p.asks(c); !r.Accepted {
			t.Fatal(r.Reason)
		}
	}
	var plan message.Plan
	for plan.Cause != event.CauseResize {
		p.round(nil)
		plan, _ = p.sent[0][len(p.sent[0])-1].(message.Plan)
	}
	var reasons []string
	for _, r := range p.log {
		switch {
		case r.Edit != nil && r.Edit.By == "tuner":
			reasons = append(reasons, r.Edit.Whose())
		case r.State != nil && r.State.Phase == event.Paused:
			reasons = append(reasons, r.State.Reason)
			if r.State.Round != paused {
				t.Errorf("the pause is recorded at round %d, but workers finish round %d before it", r.State.Round, paused)
			}
		}
	}
	reasons = append(reasons, plan.Note)
	want := []string{"tuner: the loss is flat", "by tuner: lunch", "population is 6, by tuner: more of them"}
	if !slices.Equal(reasons, want) {
		t.Errorf("the log has %q, want %q", reasons, want)
	}
}

// TestEmptyCommand: a command that asks for nothing is rejected, and nothing is recorded.
func TestEmptyCommand(t *testing.T) {
	p := newTestRun(t, 1, nil)
	p.round(nil)
	records := len(p.log)
	for _, c := range []event.Command{{}, {ID: 4, By: "tuner", Why: "a look"}, {Of: "parle"}, {Worker: 1}} {
		if r := p.asks(c); r.Accepted || !r.Usage || !strings.Contains(r.Reason, "the command is empty: give knobs to set") {
			t.Errorf("%+v is answered by %+v", c, r)
		}
	}
	if len(p.log) != records {
		t.Errorf("recorded: %+v", p.log[records:])
	}
}

// TestLimits: a limit that is invalid or already reached is rejected together with the rest of its command, and the
// previous limit stays in effect.
func TestLimits(t *testing.T) {
	p := newTestRun(t, 1, nil)
	for p.core.granted < 10 {
		p.round(nil)
	}
	p.core.progress.Epochs = 2
	granted, was := p.core.granted, p.core.cfg.Limit
	for _, c := range []struct {
		limit event.Limit
		want  string
		typed bool
	}{
		{event.Limit{}, "the limit names no end: give rounds, epochs, seconds or a target", true},
		{event.Limit{Seconds: -5}, "the limit has -5 seconds: give a number above 0, or leave it out", true},
		{event.Limit{Rounds: 90, Epochs: -5}, "the limit has -5 epochs: give", true},
		{event.Limit{Epochs: math.NaN()}, "the limit has NaN epochs: give", true},
		{event.Limit{Seconds: math.Inf(1)}, "the limit has +Inf seconds: give", true},
		{event.Limit{Target: "fame=1"}, `target "fame=1"`, true},
		{event.Limit{Rounds: granted}, fmt.Sprintf("round %d is already granted: give more rounds, or stop the run", granted), false},
		{event.Limit{Rounds: 1}, fmt.Sprintf("round %d is already granted", granted), false},
		{event.Limit{Epochs: 2}, "2 epochs are already done: give more, or stop the run", false},
		{event.Limit{Rounds: 90, Epochs: 1}, "2 epochs are already done", false},
	} {
		edits := []event.Setting{{Knob: "eta", Expr: "0.2"}}
		if r := p.asks(event.Command{Limit: &c.limit, Set: edits}); r.Accepted || r.Usage != c.typed ||
			!strings.Contains(r.Reason, c.want) {
			t.Errorf("%+v is answered by %+v, want %q", c.limit, r, c.want)
		}
	}
	if p.core.cfg.Limit != was || len(p.core.staged) > 0 {
		t.Errorf("after refusals the limit is %+v, and %v is staged", p.core.cfg.Limit, p.core.staged)
	}
	for _, l := range []event.Limit{{Rounds: p.core.granted + 1}, {Epochs: 2.5}, {Seconds: 1e-3, Target: "loss=0"},
		{Target: "loss=0.1"}} {
		if r := p.asks(event.Command{Limit: &l}); !r.Accepted || p.core.cfg.Limit != l {
			t.Errorf("%+v is answered by %+v", l, r)
		}
	}
}

// TestHeldGrantIsFollowedByNone: under a target, a grant may end early, so the next grant is sent only after its
// report, also if the target was removed meanwhile: the first round of the next grant is not known before.
func TestHeldGrantIsFollowedByNone(t *testing.T) {
	p := newTestRun(t, 2, func(c *Config) { c.Limit = event.Limit{Target: "loss=0.001"} })
	granted := func() (n int) {
		for _, m := range p.sent[0] {
			if g, ok := m.(message.Grant); ok && g.From >= p.core.committed {
				n++
			}
		}
		return n
	}
	if n := granted(); n != 1 {
		t.Fatalf("%d grants are outstanding under a target", n)
	}
	if r := p.asks(event.Command{Limit: &event.Limit{Rounds: testRounds}}); !r.Accepted {
		t.Fatal(r.Reason)
	}
	p.step(Tick{})
	if n := granted(); n != 1 {
		t.Errorf("%d grants are outstanding, and the first one may end early", n)
	}
	p.round(nil)
	if n := granted(); n != p.core.cfg.Ahead {
		t.Errorf("%d grants are outstanding, want %d", n, p.core.cfg.Ahead)
	}
}
