package coordinator

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"brood/runtime/event"
	"brood/runtime/message"
)

// loses lets a worker report that its connection to another broke.
func (p *party) loses(w, other int) {
	p.step(message.Failed{Worker: w, Epoch: p.core.epoch, Err: "nothing came for 1.6 s", Cut: &other})
}

// TestLostLinks: workers that lose each other are tried again in a new membership epoch, at once and after a pause,
// with the members that they have; a third time one of them is sent away for a while, with a sentence that says what to
// do.
func TestLostLinks(t *testing.T) {
	p := newParty(t, 2, nil)
	p.round(nil)
	for try, wait := range linkPauses {
		epoch, at := p.core.epoch, p.core.committed
		p.loses(1, 0)
		p.step(message.Failed{Worker: 0, Epoch: epoch, Err: "it ended the connection", Cut: new(1)}) // both ends notice
		if wait > 0 && p.core.epoch != epoch {
			t.Errorf("try %d does not wait", try+1)
		}
		p.now = p.now.Add(wait)
		p.step(Tick{})
		if p.core.epoch != epoch+1 || p.core.plan == nil || p.core.plan.At != at || len(p.core.plan.Lost) > 0 || len(p.out) > 0 {
			t.Fatalf("try %d: epoch %d after %d, plan %+v, put out %v", try+1, p.core.epoch, epoch, p.core.plan, p.out)
		}
		p.ready()
		p.round(nil)
		if p.core.committed <= at || len(p.core.roster.Workers()) != 2 {
			t.Fatalf("try %d: round %d after %d by %v", try+1, p.core.committed, at, p.core.roster.Workers())
		}
	}
	p.loses(1, 0)
	texts := strings.Join(p.alerts(), "\n")
	if !slices.Equal(p.away, []away{{1, linkAway}}) || !strings.Contains(texts, "worker 1 is lost: it lost others 3 times in 10m0s, though it reaches the coordinator: see to the network between the workers; the last time, worker 1 reported: nothing came for 1.6 s; it may come back in 10s") {
		t.Errorf("put out %v, alerts %s", p.away, texts)
	}
	if !strings.Contains(texts, "warning lost-link: workers 0 and 1 lost each other: tried again at once, 1 of 2; worker 1 reports: nothing came for 1.6 s") ||
		!strings.Contains(texts, "tried again after 2s, 2 of 2") {
		t.Errorf("alerts %s", texts)
	}
	p.ready()
	p.round(nil)
}

// loses3 lets worker 0 and another lose each other until the other is put out.
func (p *party) loses3(w int) {
	for range len(linkPauses) + 1 {
		p.loses(w, 0)
		p.now = p.now.Add(linkPauses[len(linkPauses)-1])
		p.step(Tick{})
		p.ready()
		p.round(nil)
	}
}

// comes lets a worker join, and takes it in.
func (p *party) comes(w int) {
	p.step(Joined{Worker: w})
	p.round(nil)
	p.round(nil)
	p.ready()
	p.round(nil)
}

// TestAwayLonger: whoever is put out because of lost links may come back as another number, each time after twice as
// long, up to a bound; where that has not happened for long, it begins anew.
func TestAwayLonger(t *testing.T) {
	p := newParty(t, 2, nil)
	p.round(nil)
	want := linkAway
	for w := 1; w < 10; w++ {
		p.loses3(w)
		if last := p.away[len(p.away)-1]; len(p.away) != w || last != (away{w, want}) || want > linkForgiven {
			t.Fatalf("put out %v, want worker %d for %s", p.away, w, want)
		}
		p.comes(w + 1)
		if !slices.Contains(p.core.roster.Workers(), w+1) {
			t.Fatalf("worker %d is back, and %v host the members", w+1, p.core.roster.Workers())
		}
		want = min(2*want, linkForgiven)
	}
	p.now = p.now.Add(awayForgiven + time.Second)
	p.loses3(10)
	if last := p.away[len(p.away)-1]; last != (away{10, linkAway}) {
		t.Errorf("after a long time, put out %v", last)
	}
}

// TestAwayByKey: whoever says again and again that it could never reach another pays with ever longer pauses of its
// own. Another key pays for its own losses alone.
func TestAwayByKey(t *testing.T) {
	p := newParty(t, 1, nil)
	p.round(nil)
	next := 1
	never := func(key string) time.Duration {
		w := next
		next++
		p.step(Joined{Worker: w, Key: key})
		p.round(nil)
		p.round(nil)
		p.step(message.Failed{Worker: 0, Epoch: p.core.epoch, Err: "it does not answer", Cut: &w, Never: true})
		p.ready()
		p.round(nil)
		if last := p.away[len(p.away)-1]; last.worker != w {
			t.Fatalf("put out %v, want worker %d", p.away, w)
		}
		return p.away[len(p.away)-1].after
	}
	for n := range 8 {
		if got, want := never("liar"), min(linkAway<<n, linkForgiven); got != want {
			t.Errorf("time %d: away for %s, want %s", n+1, got, want)
		}
	}
	if got := never("honest"); got != linkAway {
		t.Errorf("another key is away for %s", got)
	}
	p.now = p.now.Add(awayForgiven + time.Second)
	if got := never("liar"); got != linkAway || len(p.core.evictions) != 1 {
		t.Errorf("after a long time it is away for %s, and %v are known", got, p.core.evictions)
	}
}

// TestNeverReached: who could never reach another is put out for good, for its address is wrong; but where somebody was
// put out because of lost links lately, it may be that network still, and it may come back. Then a newcomer that
// holds nothing yet is not tried again while all others wait.
func TestNeverReached(t *testing.T) {
	p := newParty(t, 2, nil)
	p.round(nil)
	never := func(w int) away {
		p.step(message.Failed{Worker: w, Epoch: p.core.epoch, Err: "it does not answer", Cut: new(0), Never: true})
		p.ready()
		p.round(nil)
		if len(p.core.breaks) > 0 {
			t.Errorf("what never was has broken: %v", p.core.breaks)
		}
		return p.away[len(p.away)-1]
	}
	if got := never(1); got != (away{1, 0}) {
		t.Errorf("at first: %v", got)
	}
	p.comes(2)
	p.loses3(2)
	p.comes(3)
	if got := never(3); got != (away{3, 2 * linkAway}) {
		t.Errorf("once a link was lost: %v", got)
	}
	p.now = p.now.Add(awayForgiven - time.Minute)
	p.comes(4)
	if got := never(4); got != (away{4, 4 * linkAway}) {
		t.Errorf("once a link was lost: %v", got)
	}
	p.step(Joined{Worker: 9})
	p.round(nil)
	p.round(nil)
	p.loses(9, 0) // on its way in
	p.ready()
	p.round(nil)
	if got := p.away[len(p.away)-1]; got != (away{9, 8 * linkAway}) || p.core.committed == 0 {
		t.Errorf("once a link was lost, on its way in: %v", got)
	}
	p.now = p.now.Add(2 * time.Minute)
	p.comes(15)
	if got := never(15); got != (away{15, 0}) {
		t.Errorf("long after: %v", got)
	}
}

// TestNewcomerGoes: of two that could not reach each other, the one that hosts no member goes, whichever of them says
// so first: no row is lost and no round done again. By another's word it never goes for good. Where somebody was put
// out because of lost links lately, that is so too for a connection that broke before it hosted a member.
func TestNewcomerGoes(t *testing.T) {
	for name, c := range map[string]struct {
		who, of    int
		never, bad bool
		want       away
	}{
		"it says so":                       {2, 0, true, false, away{2, 0}},
		"the host says so":                 {0, 2, true, false, away{2, linkAway}},
		"it says so in a bad network":      {2, 0, true, true, away{2, 2 * linkAway}},
		"the host says so in one":          {0, 2, true, true, away{2, 2 * linkAway}},
		"it lost the host in one":          {2, 0, false, true, away{2, 2 * linkAway}},
		"the host lost it in one":          {0, 2, false, true, away{2, 2 * linkAway}},
		"a newcomer says so of another":    {3, 2, true, false, away{3, 0}},
		"a newcomer of another, in a bad":  {3, 2, true, true, away{3, 2 * linkAway}},
		"a newcomer lost another in a bad": {3, 2, false, true, away{3, 2 * linkAway}},
	} {
		p := newParty(t, 2, nil)
		p.round(nil)
		if c.bad {
			p.loses3(1)
		} else {
			p.step(Lost{1, "it died"})
			p.ready()
			p.round(nil)
		}
		p.step(Joined{Worker: 2})
		p.step(Joined{Worker: 3})
		p.round(nil)
		p.round(nil)
		at := p.core.committed
		if p.core.plan == nil || len(p.core.plan.New.Workers()) != 3 {
			t.Fatalf("%s: plan %+v", name, p.core.plan)
		}
		p.step(message.Failed{Worker: c.who, Epoch: p.core.epoch, Err: "it does not answer", Cut: &c.of, Never: c.never})
		if got := p.away[len(p.away)-1]; got != c.want {
			t.Errorf("%s: put out %v, want %v", name, p.away, c.want)
		}
		said := "it reports: "
		if c.who != c.want.worker {
			said = fmt.Sprintf("worker %d reports: ", c.who)
		}
		if texts := strings.Join(p.alerts(), "\n"); !strings.Contains(texts, fmt.Sprintf("worker %d is lost: %sit does not answer", c.want.worker, said)) {
			t.Errorf("%s: alerts %s", name, texts)
		}
		if plan := p.core.plan; plan == nil || plan.From != event.Workers || len(plan.Lost) > 0 || plan.At != at {
			t.Errorf("%s: plan %+v, want one of the workers at round %d", name, plan, at)
		}
		p.ready()
		p.round(nil)
	}
}

// TestLostLinkInPlan: the way into a membership epoch is tried again too, also the first one.
func TestLostLinkInPlan(t *testing.T) {
	p := newParty(t, 2, nil)
	p.step(Joined{Worker: 2})
	p.round(nil)
	p.round(nil)
	if p.core.plan == nil {
		t.Fatal("nobody joins")
	}
	p.loses(2, 0)
	if p.core.plan == nil || p.core.plan.Cause != "restore" || len(p.core.plan.New.Workers()) != 3 || len(p.out) > 0 {
		t.Errorf("plan %+v, put out %v", p.core.plan, p.out)
	}
	p.ready()
	p.round(nil)

	first := &party{t: t, now: time.Unix(1, 0), sent: map[int][]any{}}
	first.core = newParty(t, 1, nil).core
	core, err := New(first.core.cfg)
	if err != nil {
		t.Fatal(err)
	}
	core.cfg.Wait, first.core = 2, core
	first.step(Joined{Worker: 0})
	first.step(Joined{Worker: 1})
	first.loses(0, 1)
	first.ready()
	first.round(nil)
	if at, _ := first.core.Committed(); at == 0 || len(first.out) > 0 {
		t.Errorf("round %d, put out %v", at, first.out)
	}
}

// TestWhoIsSentAway: whoever lost more goes, and where two are equal the one that says so: no worker talks another out.
func TestWhoIsSentAway(t *testing.T) {
	for name, c := range map[string]struct {
		lost [][2]int // who says so, and of whom
		out  []int
	}{
		"one against all":        {[][2]int{{1, 0}, {2, 0}, {2, 0}}, []int{0}},
		"a liar about one":       {[][2]int{{2, 0}, {2, 0}, {2, 0}}, []int{2}},
		"a liar about all":       {[][2]int{{2, 0}, {2, 1}, {2, 0}}, []int{2}},
		"a death in between":     {[][2]int{{2, 0}, {2, 0}, {0, -1}, {2, 1}}, nil},
		"a leave in between":     {[][2]int{{2, 0}, {2, 0}, {0, -2}, {2, 1}}, nil},
		"a long time in between": {[][2]int{{2, 0}, {2, 0}, {-1, -1}, {2, 0}}, nil},
	} {
		p := newParty(t, 3, nil)
		for _, l := range c.lost {
			switch {
			case l[0] < 0:
				p.now = p.now.Add(linkForgiven + time.Second)
			case l[1] == -2:
				p.step(message.Leaving{Worker: l[0]})
			case l[1] < 0:
				p.step(Lost{l[0], "it died"})
			default:
				p.loses(l[0], l[1])
			}
			p.now = p.now.Add(time.Minute)
			p.step(Tick{})
			p.ready()
			p.round(nil)
		}
		if !slices.Equal(p.out, c.out) {
			t.Errorf("%s: put out %v, want %v: %q", name, p.out, c.out, p.alerts())
		}
	}
}

// TestLostLinkOfNobody: who lost a worker that is not there says what cannot be.
func TestLostLinkOfNobody(t *testing.T) {
	for _, other := range []int{1, 7, -1} {
		p := newParty(t, 2, nil)
		p.loses(1, other)
		if !slices.Equal(p.out, []int{1}) || p.core.Phase() != event.Training {
			t.Errorf("lost %d: put out %v, alerts %q", other, p.out, p.alerts())
		}
	}
}
