package fleet_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"brood/optim/catalog"
	"brood/optim/collective"
	"brood/runtime/conformance"
	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/fleet"
	"brood/runtime/message"
	"brood/runtime/worker"
)

// addWorker adds a worker to the fleet as a remote one.
func addWorker(ctx context.Context, f *fleet.Fleet, wg *sync.WaitGroup,
	spawn func(int) (*worker.Worker, error)) (int, *fleet.Mailbox, error) {
	id := f.Reserve()
	w, err := spawn(id)
	if err != nil {
		return id, nil, err
	}
	box := fleet.NewMailbox()
	wg.Go(func() {
		reason := "it left"
		if err := fleet.Attend(ctx, box, w, 0, f.Report); err != nil {
			reason = err.Error()
		}
		w.Free()
		f.Gone(id, reason)
	})
	f.AddRemote(id, "", message.Ready{}, box)
	return id, box, nil
}

// TestRemoteWorkers: a fleet without local workers trains on remote ones, continues when one leaves, and admits
// another.
func TestRemoteWorkers(t *testing.T) {
	log := &conformance.Log{}
	var spawn func(int) (*worker.Worker, error)
	var boxes []*fleet.Mailbox
	var wg sync.WaitGroup
	var f *fleet.Fleet
	left, joined := false, false
	f = newFleet(t, 0, func(c *fleet.Config) {
		spawn, c.Log, c.Core.Wait, c.Core.Limit = c.Spawn, log, 2, event.Limit{Rounds: 1 << 40}
		c.Watch = func(r event.Record) {
			switch {
			case r.Commit != nil && !left:
				left = true
				boxes[1].Close()
			case r.Plan != nil && r.Plan.Cause == "death":
				wg.Go(func() {
					if _, _, err := addWorker(t.Context(), f, &wg, spawn); err != nil {
						t.Error(err)
					}
				})
			case r.Plan != nil && r.Plan.Cause == "join" && !joined:
				joined = true
				wg.Go(f.Interrupt)
			}
		}
	})
	for range 2 {
		_, box, err := addWorker(t.Context(), f, &wg, spawn)
		if err != nil {
			t.Fatal(err)
		}
		boxes = append(boxes, box)
	}
	x, err := f.Run(bounded(t))
	wg.Wait()
	if err != nil || x.Phase != event.Stopped || !joined {
		t.Fatalf("%+v, %v, joined %v", x, err, joined)
	}
	for _, r := range log.Records {
		if r.Alert != nil && r.Alert.Kind == "lost-worker" && r.Alert.Text != "worker 1 is lost: it left" {
			t.Errorf("alert %q", r.Alert.Text)
		}
	}
}

// mute is a handle of a worker that never reports.
type mute struct {
	mu     sync.Mutex
	posted []message.Order
	closed chan struct{}
	once   sync.Once
}

func (m *mute) Post(msg message.Order) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.posted = append(m.posted, msg)
	if _, away := msg.(message.Evict); away {
		m.Close()
	}
}

func (m *mute) Close() { m.once.Do(func() { close(m.closed) }) }

func waitClosed(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-bounded(t).Done():
		t.Fatal("the handle was not closed")
	}
}

// TestEvicted: a worker that fails is evicted for good with the cause. The end of the run closes all handles, and a
// handle that is added later.
func TestEvicted(t *testing.T) {
	f := newFleet(t, 0, func(c *fleet.Config) { c.Core.Wait = 2 })
	a, b := &mute{closed: make(chan struct{})}, &mute{closed: make(chan struct{})}
	over := make(chan coordinator.Exit, 1)
	go func() {
		x, _ := f.Run(bounded(t))
		over <- x
	}()
	f.AddRemote(f.Reserve(), "", message.Ready{}, a)
	f.AddRemote(f.Reserve(), "", message.Ready{}, b)
	f.Report(message.Failed{Worker: 1, Epoch: 1, Err: "no"})
	waitClosed(t, b.closed)
	b.mu.Lock()
	if a, ok := b.posted[len(b.posted)-1].(message.Evict); !ok || a.After != 0 || a.Why != "it reports: no" {
		t.Errorf("the evicted worker got %+v", b.posted)
	}
	b.mu.Unlock()
	f.Gone(1, "closed")
	f.AddRemote(f.Reserve(), "", message.Ready{}, b)
	f.Interrupt()
	f.Gone(0, "the last worker that can save is lost")
	f.Gone(2, "closed")
	if x := <-over; x.Phase != event.Stopped {
		t.Errorf("%+v", x)
	}
	late := &mute{closed: make(chan struct{})}
	f.AddRemote(f.Reserve(), "", message.Ready{}, late)
	waitClosed(t, late.closed)
	f.Report(message.Ready{})
	f.Gone(3, "after the end")
}

// TestLocalEviction: a worker of this process that is evicted for a time is replaced at its end; one that died is
// replaced at once.
func TestLocalEviction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var f *fleet.Fleet
		var out, back time.Time
		losses := 0
		f = newFleet(t, 2, func(c *fleet.Config) {
			c.Core.Limit, c.Respawn, c.Tick = event.Limit{}, time.Second, 100*time.Millisecond
			c.Watch = func(r event.Record) {
				if a := r.Alert; a != nil && a.Kind == event.AlertLostWorker {
					out = time.Now()
					go f.Command(ctx, event.Command{Action: event.Pause}) // virtual time does not advance during rounds
				}
				if r.Plan == nil {
					return
				}
				switch workers := r.Plan.New.Workers(); {
				case len(workers) == 2 && out.IsZero() && losses < 3:
					losses++
					go f.Report(message.Failed{Worker: 1, Epoch: r.Plan.Epoch, Err: "it is silent", Cut: new(0)})
				case slices.Equal(workers, []int{0, 2}):
					back = time.Now()
					go f.Interrupt()
				}
			}
		})
		if x, err := f.Run(ctx); err != nil || x.Phase != event.Stopped {
			t.Fatalf("%+v, %v: lost %d times", x, err, losses)
		}
		if took := back.Sub(out); took < 10*time.Second || took > 11*time.Second {
			t.Errorf("the worker is back after %s, want 10s", took)
		}
	})
}

// TestGrace: a failure is reported only after the grace, and not if an abort arrives before.
func TestGrace(t *testing.T) {
	bad := message.Plan{Plan: event.Plan{Epoch: 1, From: "nowhere", Algorithm: "dp-sgd"}}
	attend := func(grace time.Duration, during func(*fleet.Mailbox)) (reports []message.Report) {
		var spawn func(int) (*worker.Worker, error)
		newFleet(t, 0, func(c *fleet.Config) { spawn = c.Spawn })
		w, err := spawn(0)
		if err != nil {
			t.Fatal(err)
		}
		box, ctx := fleet.NewMailbox(), bounded(t)
		box.Post(bad)
		time.AfterFunc(20*time.Millisecond, func() { during(box) })
		if err := fleet.Attend(ctx, box, w, grace, func(r message.Report) {
			reports = append(reports, r)
			box.Close()
		}); err != nil || ctx.Err() != nil {
			t.Errorf("%v, %v", err, ctx.Err())
		}
		w.Free()
		return reports
	}
	if reports := attend(time.Hour, func(b *fleet.Mailbox) {
		b.Post(message.Abort{Epoch: 2})
		b.Post(message.Stop{})
	}); len(reports) > 0 {
		t.Errorf("an abort does not void the failure: %+v", reports)
	}
	if reports := attend(time.Millisecond, func(*fleet.Mailbox) {}); len(reports) != 1 ||
		!strings.Contains(reports[0].(message.Failed).Err, "nowhere") {
		t.Errorf("reports %+v", reports)
	}
}

// TestSaveWithinGrant: a checkpoint is saved between two rounds of a grant, from the snapshot at its begin, and not
// after the grant.
func TestSaveWithinGrant(t *testing.T) {
	var spawn func(int) (*worker.Worker, error)
	newFleet(t, 0, func(c *fleet.Config) { spawn = c.Spawn })
	w, err := spawn(0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Free()
	box, ctx := fleet.NewMailbox(), bounded(t)
	roster := collective.Place(collective.IDs(4), []int{0})
	box.Post(message.Plan{Plan: event.Plan{Epoch: 1, From: event.Fresh, Algorithm: "dp-sgd", New: roster}})
	box.Post(message.Grant{Epoch: 1, To: 3})
	box.Post(message.Save{Epoch: 1})
	box.Post(message.Grant{Epoch: 1, From: 3, To: 4})
	var got []string
	err = fleet.Attend(ctx, box, w, 0, func(r message.Report) {
		switch r := r.(type) {
		case message.Saved:
			got = append(got, fmt.Sprint("saved ", r.At, r.Err))
		case message.Done:
			if got = append(got, fmt.Sprint("done ", r.To)); r.To == 4 {
				box.Close()
			}
		case message.Failed:
			t.Error(r.Err)
			box.Close()
		}
	})
	if want := []string{"saved 0", "done 3", "done 4"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}

// TestReserveOld: a worker gets its old number back as often as it returns, no other worker does, and new workers get
// other numbers.
func TestReserveOld(t *testing.T) {
	f, err := fleet.New(fleet.Config{FirstID: 3,
		Core: coordinator.Config{Algorithm: "dp-sgd", Members: 1, Lookup: catalog.Lookup}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		id   int
		key  string
		want bool
	}{{1, "a", true}, {1, "a", true}, {1, "b", false}, {3, "a", false}, {-1, "a", false}, {2, "b", true}} {
		if got := f.ReserveOld(c.id, c.key); got != c.want {
			t.Errorf("number %d for %s: %t", c.id, c.key, got)
		}
	}
	f.AddRemote(1, "a", message.Ready{}, fleet.NewMailbox())
	if f.ReserveOld(1, "a") {
		t.Error("a worker that is present gets its number twice")
	}
	if id := f.Reserve(); id != 3 {
		t.Errorf("a new worker is number %d", id)
	}
}
