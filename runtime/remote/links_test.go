package remote

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"brood/runtime/event"
)

// lossy is a run of two workers whose links a test cuts and mends.
type lossy struct {
	*served
	cuts   int // still to be made
	lasts  time.Duration
	alerts []string
	newest time.Time // commit
	stall  time.Duration
	seen   chan struct{} // holds a token for each loss that was noticed
	mended chan struct{} // holds a token for each link that is up again
}

// loseLinks readies a run that loses all links between workers for a while, so many times, each once rounds are
// committed again.
func loseLinks(t *testing.T, rounds uint64, cuts int, lasts time.Duration) *lossy {
	t.Helper()
	o := small(rounds)
	o.Workers = 2
	a := &lossy{cuts: cuts, lasts: lasts, seen: make(chan struct{}, cuts), mended: make(chan struct{}, cuts)}
	a.mended <- struct{}{}
	a.served = serve(t, prepare(t, o), nil, filepath.Join(t.TempDir(), "run"), a.see)
	return a
}

func (a *lossy) see(r event.Record) {
	if r.Alert != nil {
		if a.alerts = append(a.alerts, r.Alert.Text); r.Alert.Level == "warning" {
			a.seen <- struct{}{}
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
	a := loseLinks(t, 200, 1, 2*time.Second)
	ends := []<-chan error{a.work(t.Context(), a.config()), a.work(t.Context(), a.config())}
	exit := a.train()
	for _, end := range ends {
		if err := <-end; err != nil {
			t.Errorf("a worker ends with %v", err)
		}
	}
	last := a.plans[len(a.plans)-1]
	if exit.Phase != event.Finished || len(last.New.Workers()) != 2 || len(a.plans) < 2 {
		t.Errorf("%+v, plans %+v, alerts %q", exit, a.plans, a.alerts)
	}
	if want := alone(t, small(200)); a.hash != want {
		t.Errorf("ends with %s, undisturbed with %s", a.hash, want)
	}
	verifies(t, a.dir, a.hash)
	t.Logf("a stall of %s, alerts %q", a.stall.Round(10*time.Millisecond), a.alerts)
}

// TestLinkLostThrice: a third time one of them is sent away for good, ends with a sentence that says so and what to do,
// and the run goes on with the other. Then it may be started again.
func TestLinkLostThrice(t *testing.T) {
	a := loseLinks(t, 1<<40, 3, 2*time.Second)
	watch := a.watch
	a.watch = func(r event.Record) {
		watch(r)
		if last := a.plans[max(1, len(a.plans))-1:]; r.Commit != nil && len(last[0].New.Workers()) == 1 {
			a.run.Interrupt()
		}
	}
	ends := []<-chan error{a.work(t.Context(), a.config()), a.work(t.Context(), a.config())}
	exit := a.train()
	if exit.Phase != event.Stopped {
		t.Errorf("%+v, plans %+v, alerts %q", exit, a.plans, a.alerts)
	}
	var out []error
	for _, end := range ends {
		if err := <-end; err != nil {
			out = append(out, err)
		}
	}
	if len(out) != 1 || !strings.Contains(out[0].Error(), "the coordinator sent this worker away for good: it lost others 3 times in 10m0s, though it reaches the coordinator: see to the network") {
		t.Errorf("ends %v, alerts %q", out, a.alerts)
	}
	verifies(t, a.dir, a.hash)
	t.Logf("the longest stall of %s, alerts %q", a.stall.Round(10*time.Millisecond), a.alerts)
}
