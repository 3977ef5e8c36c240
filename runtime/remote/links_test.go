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

// lossy is a run of two workers whose links the test breaks and restores.
type lossy struct {
	*served
	cuts     int // remaining
	lasts    time.Duration
	alerts   []string
	newest   time.Time // time of the newest commit
	stall    time.Duration
	seen     chan struct{} // holds a token if a loss was noticed
	restored chan struct{} // holds a token for each restored link
}

// loseLinks prepares a run that loses all links between workers the given number of times, each for a while and after
// rounds are committed again.
func loseLinks(t *testing.T, rounds uint64, cuts int, lasts time.Duration) *lossy {
	t.Helper()
	o := small(rounds)
	o.Workers = 2
	a := &lossy{cuts: cuts, lasts: lasts, seen: make(chan struct{}, 1), restored: make(chan struct{}, cuts)}
	a.restored <- struct{}{}
	a.served = serve(t, prepare(t, o), nil, filepath.Join(t.TempDir(), "run"), a.see)
	return a
}

func (a *lossy) see(r event.Record) {
	if r.Alert != nil {
		if a.alerts = append(a.alerts, r.Alert.Text); r.Alert.Level == "warning" {
			select {
			case a.seen <- struct{}{}:
			default: // already noticed
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
	case <-a.restored:
	default:
		return
	}
	a.cuts--
	select {
	case <-a.seen: // a token from an earlier loss
	default:
	}
	a.workers.Go(func() {
		a.shape(1)
		time.Sleep(a.lasts)
		select {
		case <-a.seen: // on a busy machine a short loss may go unnoticed
		case <-a.t.Context().Done():
		}
		a.shape(0)
		a.restored <- struct{}{}
	})
}

// shape sets the packet loss, from 0 to 1, of all links between workers.
func (a *lossy) shape(loss float64) {
	link := event.Link{From: event.Every, To: event.Every, Loss: loss}
	if r, err := a.run.Fleet().Command(a.t.Context(), event.Command{Link: &link, By: "test"}); err == nil && !r.Accepted {
		a.t.Errorf("shape the links: %s", r.Reason)
	}
}

// TestLinkLost: two workers lose their connection for two seconds while both reach the coordinator. They continue in a
// new membership epoch, no worker is evicted, and the run ends with the hash of an uninterrupted run.
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
	a.checkLocalHash()
	verifies(t, a.dir, a.hash)
	t.Logf("a stall of %s, alerts %q", a.stall.Round(10*time.Millisecond), a.alerts)
}

// TestLinkLostThrice: the third time one of the workers is evicted for a while, and the run continues with the other.
// It returns by itself under another number, and no process ends before the run does.
func TestLinkLostThrice(t *testing.T) {
	longtest.Need(t, longtest.Fleets, "waits until an evicted worker may return")
	t.Parallel()
	a := loseLinks(t, 1<<40, 3, 2*time.Second)
	watch := a.watch
	a.watch = func(r event.Record) {
		watch(r)
		switch {
		case r.Alert != nil && r.Alert.Kind == event.AlertLostWorker: // pause, so that fewer rounds must be verified
			a.workers.Go(func() { _, _ = a.run.Fleet().Command(t.Context(), event.Command{Action: event.Pause, By: "test"}) })
		case r.Plan != nil && slices.Max(r.Plan.New.Workers()) == 2:
			a.workers.Go(a.run.Interrupt)
		}
	}
	ends := []<-chan error{a.work(t.Context(), a.config()), a.work(t.Context(), a.config())}
	exit := a.train()
	hosts := map[int]bool{} // numbers of workers that hosted members
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
	const why = "it lost connections to other workers 3 times in 10m0s, but reaches the coordinator: " +
		"check the network between the workers; the last time, worker "
	if text := a.notes.text(); !strings.Contains(text, why) ||
		!strings.Contains(text, "; this worker returns in 10s and retries for "+testutil.Timeout.String()) {
		t.Errorf("the notes are %s", text)
	}
	if all := strings.Join(a.alerts, "\n"); !strings.Contains(all, " is lost: "+why) ||
		!strings.Contains(all, "; it may return in 10s") {
		t.Errorf("alerts %s", all)
	}
	verifies(t, a.dir, a.hash)
	t.Logf("the longest stall of %s, alerts %q", a.stall.Round(10*time.Millisecond), a.alerts)
}

// TestEvictedBeforeItJoins: an evicted worker is refused until its time is over. The time depends on its key: it
// doubles if the worker returns and again reports that it never reached the others. Another key starts from the
// minimum.
func TestEvictedBeforeItJoins(t *testing.T) {
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
	reportsBreak := func(key *identity.Key, never bool) message.Evict {
		t.Helper()
		x, err := joinRaw(s, key, nil)
		if err != nil {
			t.Fatal(err)
		}
		x.send(message.Ready{Worker: x.id})
		for {
			m, err := x.receive()
			if err != nil {
				t.Fatal(err)
			}
			switch m := m.(type) {
			case message.Plan:
				x.send(message.Failed{Worker: x.id, Epoch: m.Epoch, Err: "it is silent", Cut: new(0), Never: never})
			case message.Evict:
				return m
			}
		}
	}
	liar, other := newKey(t), newKey(t)
	if got := reportsBreak(liar, false); got.After != 10*time.Second {
		t.Errorf("first eviction: %+v", got)
	}
	_, err := joinRaw(s, liar, nil)
	if no, ok := errors.AsType[wire.Refused](err); !ok || !no.Retry || no.Code != wire.CodeWait ||
		!strings.Contains(no.Reason, "this worker was evicted and may return in ") {
		t.Errorf("before its time is over: %v", err)
	}
	s.srv.mu.Lock()
	for n := range s.srv.evictedUntil {
		s.srv.evictedUntil[n] = time.Now()
	}
	s.srv.mu.Unlock()
	if got := reportsBreak(liar, true); got.After != 20*time.Second {
		t.Errorf("second eviction: %+v", got)
	}
	if got := reportsBreak(other, true); got.After != 10*time.Second {
		t.Errorf("eviction of another key: %+v", got)
	}
	s.run.Interrupt()
	if exit := testutil.Receive(t, trained, "end of the run"); exit.Phase != event.Stopped {
		t.Errorf("%+v", exit)
	}
	if err := testutil.Receive(t, end, "end of a worker"); err != nil {
		t.Error(err)
	}
}

// TestAwayIsBounded: of very many evicted workers the server forgets those whose time is over, then those whose time
// ends first.
func TestAwayIsBounded(t *testing.T) {
	s := &Server{evictedUntil: map[wire.NodeID]time.Time{}}
	node := func(n int) wire.NodeID { return wire.NodeID{byte(n), byte(n >> 8)} }
	for n := range 3 * maxEvicted {
		s.recordEviction(node(n), time.Duration(n+1)*time.Minute)
	}
	if _, ok := s.evictedUntil[node(3*maxEvicted-1)]; !ok || len(s.evictedUntil) != maxEvicted ||
		s.evictedFor(node(0)) > 0 || s.evictedFor(node(2*maxEvicted)) <= 0 {
		t.Errorf("%d evictions are stored", len(s.evictedUntil))
	}
	for n := range s.evictedUntil {
		s.evictedUntil[n] = time.Now()
	}
	if s.recordEviction(node(0), 0); len(s.evictedUntil) != maxEvicted {
		t.Errorf("an eviction for good changes the list: %d", len(s.evictedUntil))
	}
	if s.recordEviction(node(0), time.Minute); len(s.evictedUntil) != 1 || s.evictedFor(node(0)) <= 0 {
		t.Errorf("evictions whose time is over remain: %d", len(s.evictedUntil))
	}
}
