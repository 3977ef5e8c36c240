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

// reportsBreak lets a worker report that its connection to another worker broke.
func (p *testRun) reportsBreak(w, other int) {
	p.step(message.Failed{Worker: w, Epoch: p.core.epoch, Err: "nothing came for 1.6 s", Cut: &other})
}

// TestLostLinks: after a connection between two workers broke, both continue in a new membership epoch with their
// members, the first time immediately and the second time after a pause. The third time one of them is evicted for a
// while, with a reason that want what to do.
func TestLostLinks(t *testing.T) {
	p := newTestRun(t, 2, nil)
	p.round(nil)
	for try, wait := range linkPauses {
		epoch, at := p.core.epoch, p.core.committed
		p.reportsBreak(1, 0)
		p.step(message.Failed{Worker: 0, Epoch: epoch, Err: "it ended the connection", Cut: new(1)}) // both ends report it
		if wait > 0 && p.core.epoch != epoch {
			t.Errorf("retry %d does not wait", try+1)
		}
		p.now = p.now.Add(wait)
		p.step(Tick{})
		if p.core.epoch != epoch+1 || p.core.plan == nil || p.core.plan.At != at || len(p.core.plan.Lost) > 0 ||
			len(p.evicted) > 0 {
			t.Fatalf("retry %d: epoch %d after %d, plan %+v, evicted %v", try+1, p.core.epoch, epoch, p.core.plan, p.evicted)
		}
		p.ready()
		p.round(nil)
		if p.core.committed <= at || len(p.core.roster.Workers()) != 2 {
			t.Fatalf("retry %d: round %d after %d by %v", try+1, p.core.committed, at, p.core.roster.Workers())
		}
	}
	p.reportsBreak(1, 0)
	texts := strings.Join(p.alerts(), "\n")
	if !slices.Equal(p.evictions, []eviction{{1, linkAway}}) ||
		!strings.Contains(texts, "worker 1 is lost: it lost connections to other workers 3 times in 10m0s, "+
			"but reaches the coordinator: check the network between the workers; the last time, worker 1 reported: "+
			"nothing came for 1.6 s; it may return in 10s") {
		t.Errorf("evicted %v, alerts %s", p.evictions, texts)
	}
	if !strings.Contains(texts, "warning lost-link: workers 0 and 1 lost their connection: tried again at once, 1 of 2; "+
		"worker 1 reports: nothing came for 1.6 s") || !strings.Contains(texts, "tried again after 2s, 2 of 2") {
		t.Errorf("alerts %s", texts)
	}
	p.ready()
	p.round(nil)
}

// breaksUntilEvicted lets the connection between worker 0 and w break until w is evicted.
func (p *testRun) breaksUntilEvicted(w int) {
	for range len(linkPauses) + 1 {
		p.reportsBreak(w, 0)
		p.now = p.now.Add(linkPauses[len(linkPauses)-1])
		p.step(Tick{})
		p.ready()
		p.round(nil)
	}
}

// joins lets a worker join and host members.
func (p *testRun) joins(w int) {
	p.step(Joined{Worker: w})
	p.round(nil)
	p.round(nil)
	p.ready()
	p.round(nil)
}

// TestAwayLonger: each time that broken connections evict a worker, which returns under another number, it must stay
// away twice as long, up to a bound. After a long time without evictions the count restarts.
func TestAwayLonger(t *testing.T) {
	p := newTestRun(t, 2, nil)
	p.round(nil)
	want := linkAway
	for w := 1; w < 10; w++ {
		p.breaksUntilEvicted(w)
		if last := p.evictions[len(p.evictions)-1]; len(p.evictions) != w || last != (eviction{w, want}) ||
			want > linkForgiven {
			t.Fatalf("evicted %v, want worker %d for %s", p.evictions, w, want)
		}
		p.joins(w + 1)
		if !slices.Contains(p.core.roster.Workers(), w+1) {
			t.Fatalf("worker %d has returned, but %v host the members", w+1, p.core.roster.Workers())
		}
		want = min(2*want, linkForgiven)
	}
	p.now = p.now.Add(awayForgiven + time.Second)
	p.breaksUntilEvicted(10)
	if last := p.evictions[len(p.evictions)-1]; last != (eviction{10, linkAway}) {
		t.Errorf("after a long time, evicted %v", last)
	}
}

// TestAwayByKey: the time doubles with each eviction of the same key. Other keys are not affected.
func TestAwayByKey(t *testing.T) {
	p := newTestRun(t, 1, nil)
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
		if last := p.evictions[len(p.evictions)-1]; last.worker != w {
			t.Fatalf("evicted %v, want worker %d", p.evictions, w)
		}
		return p.evictions[len(p.evictions)-1].after
	}
	for n := range 8 {
		if got, want := never("liar"), min(linkAway<<n, linkForgiven); got != want {
			t.Errorf("eviction %d: away for %s, want %s", n+1, got, want)
		}
	}
	if got := never("honest"); got != linkAway {
		t.Errorf("another key is away for %s", got)
	}
	p.now = p.now.Add(awayForgiven + time.Second)
	if got := never("liar"); got != linkAway || len(p.core.evictions) != 1 {
		t.Errorf("after a long time it is away for %s, with the evictions %v", got, p.core.evictions)
	}
}

// TestNeverReached: a worker that reports that it never reached another is evicted for good, since its address is
// wrong. If another worker was recently evicted for broken connections, the network may be the cause, and it may
// return. Then a newcomer that hosts nothing yet is evicted immediately, without a retry for which all others would
// wait.
func TestNeverReached(t *testing.T) {
	p := newTestRun(t, 2, nil)
	p.round(nil)
	never := func(w int) eviction {
		p.step(message.Failed{Worker: w, Epoch: p.core.epoch, Err: "it does not answer", Cut: new(0), Never: true})
		p.ready()
		p.round(nil)
		if len(p.core.breaks) > 0 {
			t.Errorf("a connection that never existed counts as broken: %v", p.core.breaks)
		}
		return p.evictions[len(p.evictions)-1]
	}
	if got := never(1); got != (eviction{1, 0}) {
		t.Errorf("at first: %v", got)
	}
	p.joins(2)
	p.breaksUntilEvicted(2)
	p.joins(3)
	if got := never(3); got != (eviction{3, 2 * linkAway}) {
		t.Errorf("after a lost link: %v", got)
	}
	p.now = p.now.Add(awayForgiven - time.Minute)
	p.joins(4)
	if got := never(4); got != (eviction{4, 4 * linkAway}) {
		t.Errorf("after a lost link: %v", got)
	}
	p.step(Joined{Worker: 9})
	p.round(nil)
	p.round(nil)
	p.reportsBreak(9, 0) // before it hosts a member
	p.ready()
	p.round(nil)
	if got := p.evictions[len(p.evictions)-1]; got != (eviction{9, 8 * linkAway}) || p.core.committed == 0 {
		t.Errorf("after a lost link, before it hosts a member: %v", got)
	}
	p.now = p.now.Add(2 * time.Minute)
	p.joins(15)
	if got := never(15); got != (eviction{15, 0}) {
		t.Errorf("long after: %v", got)
	}
}

// TestNewcomerGoes: if two workers cannot reach each other, the one that hosts no member is evicted, whichever of them
// reports it. No row is lost and no round is repeated. The report of another worker never evicts it for good. If the
// network is known to be bad, this also applies to a connection that broke before the worker hosted a member.
func TestNewcomerGoes(t *testing.T) {
	for name, c := range map[string]struct {
		from, of   int
		never, bad bool
		want       eviction
	}{
		"the newcomer never reached the host":              {2, 0, true, false, eviction{2, 0}},
		"the host never reached the newcomer":              {0, 2, true, false, eviction{2, linkAway}},
		"the newcomer never reached the host, bad network": {2, 0, true, true, eviction{2, 2 * linkAway}},
		"the host never reached the newcomer, bad network": {0, 2, true, true, eviction{2, 2 * linkAway}},
		"the newcomer lost the host, bad network":          {2, 0, false, true, eviction{2, 2 * linkAway}},
		"the host lost the newcomer, bad network":          {0, 2, false, true, eviction{2, 2 * linkAway}},
		"a newcomer never reached another":                 {3, 2, true, false, eviction{3, 0}},
		"a newcomer never reached another, bad network":    {3, 2, true, true, eviction{3, 2 * linkAway}},
		"a newcomer lost another, bad network":             {3, 2, false, true, eviction{3, 2 * linkAway}},
	} {
		p := newTestRun(t, 2, nil)
		p.round(nil)
		if c.bad {
			p.breaksUntilEvicted(1)
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
		p.step(message.Failed{Worker: c.from, Epoch: p.core.epoch, Err: "it does not answer", Cut: &c.of, Never: c.never})
		if got := p.evictions[len(p.evictions)-1]; got != c.want {
			t.Errorf("%s: evicted %v, want %v", name, p.evictions, c.want)
		}
		cause := "it reports: "
		if c.from != c.want.worker {
			cause = fmt.Sprintf("worker %d reports: ", c.from)
		}
		if texts := strings.Join(p.alerts(), "\n"); !strings.Contains(texts,
			fmt.Sprintf("worker %d is lost: %sit does not answer", c.want.worker, cause)) {
			t.Errorf("%s: alerts %s", name, texts)
		}
		if plan := p.core.plan; plan == nil || plan.From != event.Workers || len(plan.Lost) > 0 || plan.At != at {
			t.Errorf("%s: plan %+v, want one of the workers at round %d", name, plan, at)
		}
		p.ready()
		p.round(nil)
	}
}

// TestLostLinkInPlan: a connection that breaks while a plan is in progress is retried too, also in the first plan.
func TestLostLinkInPlan(t *testing.T) {
	p := newTestRun(t, 2, nil)
	p.step(Joined{Worker: 2})
	p.round(nil)
	p.round(nil)
	if p.core.plan == nil {
		t.Fatal("no plan with worker 2")
	}
	p.reportsBreak(2, 0)
	if p.core.plan == nil || p.core.plan.Cause != "restore" || len(p.core.plan.New.Workers()) != 3 || len(p.evicted) > 0 {
		t.Errorf("plan %+v, evicted %v", p.core.plan, p.evicted)
	}
	p.ready()
	p.round(nil)

	first := &testRun{t: t, now: time.Unix(1, 0), sent: map[int][]any{}}
	first.core = newTestRun(t, 1, nil).core
	core, err := New(first.core.cfg)
	if err != nil {
		t.Fatal(err)
	}
	core.cfg.Wait, first.core = 2, core
	first.step(Joined{Worker: 0})
	first.step(Joined{Worker: 1})
	first.reportsBreak(0, 1)
	first.ready()
	first.round(nil)
	if at, _ := first.core.Committed(); at == 0 || len(first.evicted) > 0 {
		t.Errorf("round %d, evicted %v", at, first.evicted)
	}
}

// TestWhoIsSentAway: of two workers the one with more broken connections is evicted; if both have equally many, the one
// that reports it. So no worker can evict another by its own reports.
func TestWhoIsSentAway(t *testing.T) {
	for name, c := range map[string]struct {
		lost [][2]int // reporting worker and the other end
		out  []int
	}{
		"one against all":        {[][2]int{{1, 0}, {2, 0}, {2, 0}}, []int{0}},
		"a liar about one":       {[][2]int{{2, 0}, {2, 0}, {2, 0}}, []int{2}},
		"a liar about all":       {[][2]int{{2, 0}, {2, 1}, {2, 0}}, []int{2}},
		"a death in between":     {[][2]int{{2, 0}, {2, 0}, {0, -1}, {2, 1}}, nil},
		"a leave in between":     {[][2]int{{2, 0}, {2, 0}, {0, -2}, {2, 1}}, nil},
		"a long time in between": {[][2]int{{2, 0}, {2, 0}, {-1, -1}, {2, 0}}, nil},
	} {
		p := newTestRun(t, 3, nil)
		for _, l := range c.lost {
			switch {
			case l[0] < 0:
				p.now = p.now.Add(linkForgiven + time.Second)
			case l[1] == -2:
				p.step(message.Leaving{Worker: l[0]})
			case l[1] < 0:
				p.step(Lost{l[0], "it died"})
			default:
				p.reportsBreak(l[0], l[1])
			}
			p.now = p.now.Add(time.Minute)
			p.step(Tick{})
			p.ready()
			p.round(nil)
		}
		if !slices.Equal(p.evicted, c.out) {
			t.Errorf("%s: evicted %v, want %v: %q", name, p.evicted, c.out, p.alerts())
		}
	}
}

// TestLostLinkOfNobody: a worker that reports a lost connection to itself or to a worker that is not present is
// evicted.
func TestLostLinkOfNobody(t *testing.T) {
	for _, other := range []int{1, 7, -1} {
		p := newTestRun(t, 2, nil)
		p.reportsBreak(1, other)
		if !slices.Equal(p.evicted, []int{1}) || p.core.Phase() != event.Training {
			t.Errorf("lost %d: evicted %v, alerts %q", other, p.evicted, p.alerts())
		}
	}
}
