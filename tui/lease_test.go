package tui

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"brood/runtime/event"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
	"brood/tui/panel"
)

// leaseSource is a commander and source with a lease that the test sets.
type leaseSource struct {
	*sourcetest.Memory
	*desk
	lease view.Lease
	acts  []view.LeaseAct
	err   error
}

func (p *leaseSource) Watchers() (int, view.Lease) { return 2, p.lease }

func (p *leaseSource) Lease(_ context.Context, act view.LeaseAct) (view.Lease, error) {
	if act != view.LeaseLook {
		p.acts = append(p.acts, act)
	}
	return p.lease, p.err
}

func openLeased(t *testing.T, change func(*panel.Options)) (*desk, *leaseSource) {
	p := &leaseSource{Memory: sourcetest.NewMemory(sourcetest.Run(3, 400)...)}
	d := open(t, 200, 50, nil, func(o *panel.Options) {
		p.desk = o.Commander.(*desk)
		o.Source, o.Commander = p, p
		if change != nil {
			change(o)
		}
	})
	return d, p
}

// pollLeaseState advances the clock by a second and delivers the state of the lease.
func (d *desk) pollLeaseState(p *leaseSource) string {
	d.now = d.now.Add(2 * time.Second)
	d.Toast = panel.Toast{}
	if cmd := d.pollLease(); cmd != nil {
		d.Update(cmd())
	}
	return d.Toast.Text
}

func TestStatusShowsTheWriter(t *testing.T) {
	for _, c := range []struct {
		lease view.Lease
		want  string
	}{
		{view.Lease{}, "2 viewers, you control"},
		{view.Lease{Holder: "ada", Left: time.Second}, "2 viewers, ada controls"},
		{view.Lease{Holder: "ann", Mine: true, Left: time.Second}, "2 viewers, you control"},
		{view.Lease{Holder: "ann", Mine: true, Left: time.Second, Asks: "bob"},
			"2 viewers, you control, bob requests it"},
	} {
		d, p := openLeased(t, nil)
		p.lease = c.lease
		line, _, _ := strings.Cut(d.screenText(), "\n")
		if !strings.HasSuffix(strings.TrimSpace(line), c.want) {
			t.Errorf("%+v: the status line ends %q, want %q", c.lease, line, c.want)
		}
		d.W, d.H = 80, 24
		line, _, _ = strings.Cut(d.screenText(), "\n")
		if _, short, _ := strings.Cut(c.want, ", "); c.lease.Holder != "" &&
			!strings.HasSuffix(strings.TrimSpace(line), short) {
			t.Errorf("%+v: at 80 columns the status line is %q, want %q at its end", c.lease, line, short)
		}
		d, p = openLeased(t, func(o *panel.Options) { o.Commander = nil })
		p.lease = c.lease
		if d.shows("2 viewers, read-only"); d.pollLease() != nil {
			t.Error("who may only look asks for the lease")
		}
	}
}

// TestNoWriterAfterTheEnd checks that a run that has ended shows neither a writer nor rates, and a paused one no rates.
func TestNoWriterAfterTheEnd(t *testing.T) {
	for _, phase := range []event.Phase{event.Paused, event.Finished, event.Stopped, event.Failed} {
		d, _ := openLeased(t, nil)
		d.shows("2 viewers, you control", "samples/s", "B/s ")
		d.Live.Apply(event.Record{At: 2e18, State: &event.State{Phase: phase}})
		d.refresh()
		d.hides("samples/s", "B/s ")
		line, _, _ := strings.Cut(d.screenText(), "\n")
		for _, bad := range []string{"viewers", "training"} {
			if phase != event.Paused && strings.Contains(line, bad) {
				t.Errorf("%s: the status line has %q: %s", phase, bad, line)
			}
		}
	}
}

func TestLeaseRequestAndRelease(t *testing.T) {
	d, p := openLeased(t, nil)
	p.lease = view.Lease{Holder: "ada", Left: 8 * time.Second}
	if s := d.pollLeaseState(p); s != "" {
		t.Errorf("at first it says %q", s)
	}
	d.press(":").write("take").press("enter")
	if want := "requested: you control when ada agrees, or after 8 s without a command from them"; d.Toast.Text != want ||
		p.acts[0] != view.LeaseAsk {
		t.Errorf("after :take it says %q, and did %v", d.Toast.Text, p.acts)
	}
	p.lease = view.Lease{Holder: "ann", Mine: true, Left: 10 * time.Second}
	if s := d.pollLeaseState(p); !strings.HasPrefix(s, "you control now") {
		t.Errorf("when it passes it says %q", s)
	}
	p.lease.Asks = "bob"
	if s := d.pollLeaseState(p); !strings.HasPrefix(s, "bob requests control: :give hands it over") {
		t.Errorf("when bob asks it says %q", s)
	}
	if s := d.pollLeaseState(p); s != "" {
		t.Errorf("and once more: %q", s)
	}
	p.lease = view.Lease{Holder: "bob", Left: 10 * time.Second}
	d.press(":").write("give").press("enter")
	if d.Toast.Text != "bob controls now" || p.acts[1] != view.LeaseGive {
		t.Errorf("after :give it says %q, and did %v", d.Toast.Text, p.acts)
	}
	p.err = errors.New("bob asked before you")
	d.press(":").write("take").press("enter")
	if d.Toast.Text != "bob asked before you" {
		t.Errorf("a rejection is shown as %q", d.Toast.Text)
	}
	if s := d.pollLeaseState(p); s != "" {
		t.Errorf("a look in vain says %q", s)
	}
}

// TestChangesOfOthersAreShown checks that changes of other clients are shown at once, and own changes by their
// receipts.
func TestChangesOfOthersAreShown(t *testing.T) {
	d := open(t, 120, 40, sourcetest.Run(3, 400), nil)
	message := func(c event.Command) string {
		d.Toast = panel.Toast{}
		d.apply(event.Record{Accepted: &event.Accepted{N: 1, Command: c}})
		return d.Toast.Text
	}
	for _, c := range []struct {
		c    event.Command
		want string
	}{
		{event.Command{By: "bob", Set: []event.Setting{{Knob: "eta", Expr: "0.2"}}, Members: 4},
			"bob: members = 4, eta = 0.2"},
		{event.Command{By: "bob", Algorithm: "rival", Set: []event.Setting{{Knob: "eta", Expr: "0.2"}}, ID: 7},
			"bob: swap to rival, eta = 0.2"},
	} {
		if got := message(c.c); got != c.want {
			t.Errorf("it says %q, want %q", got, c.want)
		}
	}
	d.press(":").write("set eta 0.2").press("enter")
	if got := message(d.sent[0]); got != "" {
		t.Errorf("one's own: %q", got)
	}
}
