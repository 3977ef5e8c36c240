package remote

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"brood/models/longtest"
	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/runtime/testutil"
	"brood/transport/identity"
	"brood/transport/wire"
)

// lossy is a run of two workers whose links a test cuts and mends.
type lossy struct {
	*served
	cuts   int // still to be made
	lasts  time.Duration
	alerts []string
	newest time.Time // commit
	stall  time.Duration
	seen   chan struct{} // holds a token when a loss was noticed
	mended chan struct{} // holds a token for each link that is up again
}

// loseLinks readies a run that loses all links between workers for a while, so many times, each once rounds are
// committed again.
func loseLinks(t *testing.T, rounds uint64, cuts int, lasts time.Duration) *lossy {
	t.Helper()
	o := small(rounds)
	o.Workers = 2
	a := &lossy{cuts: cuts, lasts: lasts, seen: make(chan struct{}, 1), mended: make(chan struct{}, cuts)}
	a.mended <- struct{}{}
	a.served = serve(t, prepare(t, o), nil, filepath.Join(t.TempDir(), "run"), a.see)
	return a
}

func (a *lossy) see(r event.Record) {
	if r.Alert != nil {
		if a.alerts = append(a.alerts, r.Alert.Text); r.Alert.Level == "warning" {
			select {
			case a.seen <- struct{}{}:
			default: // it is known
			}
		}
	}
	c := r.Commit
	if c == nil {
		return
	}
	if !a.newest.IsZero() {
		a.stall = max(a.stall, time.Since(a.newest))
	}
	a.newest = time.Now()
	if a.cuts == 0 || c.To < 10 {
		return
	}
	select {
	case <-a.mended:
	default:
		return
	}
	a.cuts--
	select {
	case <-a.seen: // of what was before
	default:
	}
	a.workers.Go(func() {
		a.shape(1)
		time.Sleep(a.lasts)
		select {
		case <-a.seen: // else the machine is too busy to notice so short a loss
		case <-a.t.Context().Done():
		}
		a.shape(0)
		a.mended <- struct{}{}
	})
}

// shape makes all links between workers lose that share of packets.
func (a *lossy) shape(loss float64) {
	link := event.Link{From: event.Every, To: event.Every, Loss: loss}
	if r, err := a.run.Fleet().Command(a.t.Context(), event.Command{Link: &link, By: "test"}); err == nil && !r.Accepted {
		a.t.Errorf("a link is not shaped: %s", r.Reason)
	}
}

// TestLinkLost: two workers that lose each other for two seconds, while both reach the coordinator, are tried again in
// a new membership epoch: nobody is sent away, and the run ends as one that nobody disturbed.
func TestLinkLost(t *testing.T) {
	t.Parallel()
	a := loseLinks(t, 1<<40, 1, 2*time.Second)
	a.endsAfter(2)
	ends := []<-chan error{a.work(t.Context(), a.config()), a.work(t.Context(), a.config())}
	exit := a.train()
	for _, end := range ends {
		if err := testutil.Receive(t, end, "end of a worker"); err != nil {
			t.Errorf("a worker ends with %v", err)
		}
	}
	last := a.plans[len(a.plans)-1]
	if exit.Phase != event.Stopped || len(last.New.Workers()) != 2 || len(a.plans) < 2 {
		t.Errorf("%+v, plans %+v, alerts %q", exit, a.plans, a.alerts)
	}
	a.isAlone()
	verifies(t, a.dir, a.hash)
	t.Logf("a stall of %s, alerts %q", a.stall.Round(10*time.Millisecond), a.alerts)
}

// TestLinkLostThrice: a third time one of them is sent away for a while, and the run goes on with the other. It comes
// back by itself, as another number, and no process ends before the run does.
func TestLinkLostThrice(t *testing.T) {
	longtest.Need(t, longtest.Fleets, "waits until a worker that was sent away may come again")
	t.Parallel()
	a := loseLinks(t, 1<<40, 3, 2*time.Second)
	watch := a.watch
	a.watch = func(r event.Record) {
		watch(r)
		switch {
		case r.Alert != nil && r.Alert.Kind == event.AlertLostWorker: // fewer rounds to verify
			a.workers.Go(func() { _, _ = a.run.Fleet().Command(t.Context(), event.Command{Action: event.Pause, By: "test"}) })
		case r.Plan != nil && slices.Max(r.Plan.New.Workers()) == 2:
			a.workers.Go(a.run.Interrupt)
		}
	}
	ends := []<-chan error{a.work(t.Context(), a.config()), a.work(t.Context(), a.config())}
	exit := a.train()
	hosts := map[int]bool{} // how many hosted the members, with each plan
	for _, p := range a.plans {
		hosts[len(p.New.Workers())] = true
	}
	if exit.Phase != event.Stopped || !hosts[1] || len(a.plans[len(a.plans)-1].New.Workers()) != 2 {
		t.Errorf("%+v, plans %+v, alerts %q", exit, a.plans, a.alerts)
	}
	for _, end := range ends {
		if err := testutil.Receive(t, end, "end of a worker"); err != nil {
			t.Errorf("a worker ends with %v", err)
		}
	}
	const why = "it lost others 3 times in 10m0s, though it reaches the coordinator: see to the network between the workers; the last time, worker "
	if said := a.notes.text(); !strings.Contains(said, why) || !strings.Contains(said, "; this worker comes back in 10s, and tries for "+testutil.Timeout.String()) {
		t.Errorf("the worker says %s", said)
	}
	if all := strings.Join(a.alerts, "\n"); !strings.Contains(all, " is lost: "+why) || !strings.Contains(all, "; it may come back in 10s") {
		t.Errorf("alerts %s", all)
	}
	verifies(t, a.dir, a.hash)
	t.Logf("the longest stall of %s, alerts %q", a.stall.Round(10*time.Millisecond), a.alerts)
}

// TestAwayAtTheDoor: whoever was sent away is not let in before its time, whatever its client does, and pays by its
// key: one that comes back and says again that it never reached the others is away for longer, and another for no
// longer than it was at fault itself.
func TestReleasedBeforeItJoined(t *testing.T) {
	t.Parallel()
	began, once := make(chan struct{}), sync.Once{}
	s := serve(t, prepare(t, small(1<<40)), nil, filepath.Join(t.TempDir(), "run"), func(r event.Record) {
		if r.Commit != nil {
			once.Do(func() { close(began) })
		}
	})
	trained := make(chan coordinator.Exit)
	go func() { trained <- s.train() }()
	end := s.work(t.Context(), s.config())
	testutil.Receive(t, began, "round")
	lies := func(key *identity.Key, never bool) message.Evict {
		t.Helper()
		x, err := knock(s, key, nil)
		if err != nil {
			t.Fatal(err)
		}
		x.say(message.Ready{Worker: x.id})
		for {
			m, err := x.next()
			if err != nil {
				t.Fatal(err)
			}
			switch m := m.(type) {
			case message.Plan:
				x.say(message.Failed{Worker: x.id, Epoch: m.Epoch, Err: "it is silent", Cut: new(0), Never: never})
			case message.Evict:
				return m
			}
		}
	}
	liar, other := newKey(t), newKey(t)
	if got := lies(liar, false); got.After != 10*time.Second {
		t.Errorf("first sent away: %+v", got)
	}
	_, err := knock(s, liar, nil)
	if no, ok := errors.AsType[wire.Refused](err); !ok || !no.Retry || no.Code != wire.CodeWait || !strings.Contains(no.Reason, "this worker was sent away and may come back in ") {
		t.Errorf("before its time it hears %v", err)
	}
	s.srv.mu.Lock()
	for n := range s.srv.evictedUntil {
		s.srv.evictedUntil[n] = time.Now()
	}
	s.srv.mu.Unlock()
	if got := lies(liar, true); got.After != 20*time.Second {
		t.Errorf("sent away again: %+v", got)
	}
	if got := lies(other, true); got.After != 10*time.Second {
		t.Errorf("another is sent away: %+v", got)
	}
	s.run.Interrupt()
	if exit := testutil.Receive(t, trained, "end of the run"); exit.Phase != event.Stopped {
		t.Errorf("%+v", exit)
	}
	if err := testutil.Receive(t, end, "end of a worker"); err != nil {
		t.Error(err)
	}
}

// TestAwayIsBounded: of very many that were sent away those are forgotten whose time is over, then those whose time
// ends first.
func TestAwayIsBounded(t *testing.T) {
	s := &Server{evictedUntil: map[wire.NodeID]time.Time{}}
	node := func(n int) wire.NodeID { return wire.NodeID{byte(n), byte(n >> 8)} }
	for n := range 3 * maxEvicted {
		s.recordEviction(node(n), time.Duration(n+1)*time.Minute)
	}
	if _, ok := s.evictedUntil[node(3*maxEvicted-1)]; !ok || len(s.evictedUntil) != maxEvicted || s.evictedFor(node(0)) > 0 || s.evictedFor(node(2*maxEvicted)) <= 0 {
		t.Errorf("%d are known", len(s.evictedUntil))
	}
	for n := range s.evictedUntil {
		s.evictedUntil[n] = time.Now()
	}
	if s.recordEviction(node(0), 0); len(s.evictedUntil) != maxEvicted {
		t.Errorf("who is away for good is kept too: %d", len(s.evictedUntil))
	}
	if s.recordEviction(node(0), time.Minute); len(s.evictedUntil) != 1 || s.evictedFor(node(0)) <= 0 {
		t.Errorf("those whose time is over are kept: %d", len(s.evictedUntil))
	}
}
