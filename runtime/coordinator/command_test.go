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

// asks is the receipt of a command.
func (p *party) asks(c event.Command) (r event.Receipt) {
	p.t.Helper()
	for _, x := range p.step(c) {
		if got, ok := x.(Receipt); ok {
			return got.Receipt
		}
	}
	p.t.Fatalf("no receipt of %+v", c)
	return r
}

// A schedule that is over before it would take effect is refused; positions that count from there are in the log as
// rounds of the run.
func TestScheduleThatIsOver(t *testing.T) {
	p := newParty(t, 1, nil)
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

// A setting that names the algorithm whose knob it is does not turn the knob of that name of another, also where the
// swap is accepted and not in effect yet.
func TestSettingOfAnotherAlgorithm(t *testing.T) {
	p := newParty(t, 1, nil)
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
		t.Errorf("with a swap on its way: %+v", r)
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

// TestReasons: the reason of a command stays with what comes of it, and one that no screen could show is refused.
func TestReasons(t *testing.T) {
	p := newParty(t, 1, nil)
	for p.core.granted < 10 {
		p.round(nil)
	}
	for _, bad := range []string{strings.Repeat("x", event.MaxWhy+1), "two\nlines", "\x1b[31mred", "\xff"} {
		if r := p.asks(event.Command{Why: bad, Set: []event.Setting{{Knob: "eta", Expr: "0.2"}}}); r.Accepted || !r.Usage || !strings.Contains(r.Reason, "reason of the command") {
			t.Errorf("the reason %.20q is answered by %+v", bad, r)
		}
	}
	if r := p.asks(event.Command{By: "tuner", Why: "the loss is flat", Set: []event.Setting{{Knob: "eta", Expr: "0.2"}}}); !r.Accepted {
		t.Fatal(r.Reason)
	}
	for len(p.core.staged) > 0 {
		p.round(nil)
	}
	paused := p.core.granted
	if paused <= p.core.committed {
		t.Fatal("workers have nothing to do: a pause would hold at once")
	}
	for _, c := range []event.Command{{Why: "lunch", Action: event.Pause}, {Why: "back", Action: event.Resume}, {Why: "more of them", Members: 6}} {
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
	var told []string
	for _, r := range p.log {
		switch {
		case r.Edit != nil && r.Edit.By == "tuner":
			told = append(told, r.Edit.Whose())
		case r.State != nil && r.State.Phase == event.Paused:
			told = append(told, r.State.Reason)
			if r.State.Round != paused {
				t.Errorf("a pause is recorded at round %d, and the run stands at %d once its workers are done", r.State.Round, paused)
			}
		}
	}
	told = append(told, plan.Note)
	want := []string{"tuner: the loss is flat", "by tuner: lunch", "population is 6, by tuner: more of them"}
	if !slices.Equal(told, want) {
		t.Errorf("the log tells %q, want %q", told, want)
	}
}

// TestLimits: a limit that no run could reach, or that this one has reached, is refused, and so is all that came with
// it; the run ends by the one that was in force.
func TestLimits(t *testing.T) {
	p := newParty(t, 1, nil)
	for p.core.granted < 10 {
		p.round(nil)
	}
	p.core.progress.Epochs = 2
	granted, was := p.core.granted, p.core.cfg.Limit
	for _, c := range []struct {
		limit event.Limit
		says  string
		typed bool
	}{
		{event.Limit{}, "the limit names no end: give rounds, epochs, seconds or a target", true},
		{event.Limit{Seconds: -5}, "the limit has -5 seconds: give a number above 0, or leave it out", true},
		{event.Limit{Rounds: 90, Epochs: -5}, "the limit has -5 epochs: give", true},
		{event.Limit{Epochs: math.NaN()}, "the limit has NaN epochs: give", true},
		{event.Limit{Seconds: math.Inf(1)}, "the limit has +Inf seconds: give", true},
		{event.Limit{Target: "fame=1"}, `target "fame=1"`, true},
		{event.Limit{Rounds: granted}, fmt.Sprintf("round %d is given out already: give more rounds than that, or stop the run", granted), false},
		{event.Limit{Rounds: 1}, fmt.Sprintf("round %d is given out already", granted), false},
		{event.Limit{Epochs: 2}, "2 epochs are done already: give more than that, or stop the run", false},
		{event.Limit{Rounds: 90, Epochs: 1}, "2 epochs are done already", false},
	} {
		edits := []event.Setting{{Knob: "eta", Expr: "0.2"}}
		if r := p.asks(event.Command{Limit: &c.limit, Set: edits}); r.Accepted || r.Usage != c.typed || !strings.Contains(r.Reason, c.says) {
			t.Errorf("%+v is answered by %+v, want %q", c.limit, r, c.says)
		}
	}
	if p.core.cfg.Limit != was || len(p.core.staged) > 0 {
		t.Errorf("after refusals the limit is %+v, and %v is staged", p.core.cfg.Limit, p.core.staged)
	}
	for _, l := range []event.Limit{{Rounds: p.core.granted + 1}, {Epochs: 2.5}, {Seconds: 1e-3, Target: "loss=0"}, {Target: "loss=0.1"}} {
		if r := p.asks(event.Command{Limit: &l}); !r.Accepted || p.core.cfg.Limit != l {
			t.Errorf("%+v is answered by %+v", l, r)
		}
	}
}

// TestHeldGrantIsFollowedByNone: a grant that may end early, since it was given under a target, is followed by none
// before its report, even where the target has been taken away meanwhile: nobody knows where the next one would begin.
func TestHeldGrantIsFollowedByNone(t *testing.T) {
	p := newParty(t, 2, func(c *Config) { c.Limit = event.Limit{Target: "loss=0.001"} })
	granted := func() (n int) {
		for _, m := range p.sent[0] {
			if g, ok := m.(message.Grant); ok && g.From >= p.core.committed {
				n++
			}
		}
		return n
	}
	if n := granted(); n != 1 {
		t.Fatalf("%d grants are out under a target", n)
	}
	if r := p.asks(event.Command{Limit: &event.Limit{Rounds: partyRounds}}); !r.Accepted {
		t.Fatal(r.Reason)
	}
	p.step(Tick{})
	if n := granted(); n != 1 {
		t.Errorf("%d grants are out, and the first one may end early", n)
	}
	p.round(nil)
	if n := granted(); n != p.core.cfg.Ahead {
		t.Errorf("%d grants are out, want %d", n, p.core.cfg.Ahead)
	}
}
