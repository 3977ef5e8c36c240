package cli

import (
	"context"
	"errors"
	"math"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"brood/runtime/archive"

	"brood/runtime/axis"
	"brood/runtime/control"
	"brood/runtime/event"
	"brood/runtime/remote"
	"brood/runtime/session"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
	"brood/transport/identity"
	"brood/transport/wire"
)

// served starts a run with a URL, whose control socket has this view.
func served(t *testing.T, v *view.View) (url string, end func()) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "served")
	s, err := session.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	socket, err := session.SocketPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	d := control.NewServer(dir, v, func(context.Context, event.Command) (event.Receipt, error) {
		return event.Receipt{}, errors.New("it only shows")
	})
	go d.Serve(l)
	key, err := identity.New()
	if err != nil {
		t.Fatal(err)
	}
	srv, err := remote.Listen(remote.Config{Key: key, Address: "127.0.0.1:0", Guests: 8})
	if err != nil {
		t.Fatal(err)
	}
	srv.AdmitClients(dir)
	end = func() { srv.Close(); d.Close() }
	t.Cleanup(end)
	return srv.Join(wire.Viewer), end
}

// TestOverlayRunWithURL: the curves of a run with a URL equal those of its log. They remain after it stops
// answering, and invalid answers are rejected.
func TestOverlayRunWithURL(t *testing.T) {
	home := shelveCurves(t)
	want, err := archive.Read(filepath.Join(home, "away"))
	if err != nil {
		t.Fatal(err)
	}
	shown := func(change func(*view.View)) *view.View {
		v := view.New()
		for _, r := range sourcetest.Run(3, 40) {
			v.Apply(r)
		}
		change(v)
		return v
	}
	url, end := served(t, shown(func(*view.View) {}))
	h := newHosts([]hostLine{{Name: "night", URL: url}}, nil)
	defer h.end()
	entry := h.all()[0]
	if _, err := h.curves(entry); err == nil || !strings.Contains(err.Error(), "night has not answered yet") {
		t.Errorf("before it was asked: %v", err)
	}
	h.asks.Wait()
	entry = h.all()[0]
	got, err := h.curves(entry)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []axis.Axis{axis.Rounds, axis.Samples, axis.Bytes, axis.Seconds} {
		lo, hi := want.Span(a)
		x, _ := want.Curve("loss", a, lo, hi, 20)
		y, _ := got.Curve("loss", a, lo, hi, 20)
		if len(x) != 20 || len(y) != 20 || x[10] != y[10] || x[10].Empty() {
			t.Errorf("over %ss it has %v, the log %v", a, y, x)
		}
	}
	for name, x := range want.Figures {
		if y, ok := got.Figures[name]; name != "train_loss" && (!ok || math.Abs(x-y) > 1e-9*math.Abs(x)) {
			t.Errorf("%s is %g, of its log %g", name, y, x)
		}
	}
	for _, s := range want.Settings {
		if got.Value(s.Name) != s.Value {
			t.Errorf("%s is %q, of its log %q", s.Name, got.Value(s.Name), s.Value)
		}
	}
	if s := h.summary(entry); !entry.Running || got.Dir != entry.Dir || len(s.Curve) == 0 || math.IsNaN(s.Loss) {
		t.Errorf("%+v, %+v", entry, s)
	}

	// After the run is gone, its last answer remains, and it is not marked as running.
	end()
	h.last["night"].at = h.last["night"].at.Add(-pollURLEvery)
	h.all()
	h.asks.Wait()
	entry = h.all()[0]
	// Another test may listen on its port by now, so the reason may be another key.
	if again, err := h.curves(entry); err != nil || again != got || entry.Running ||
		!strings.HasPrefix(h.summary(entry).Err, "night does not answer: ") {
		t.Errorf("%v, runs %v: %s", err, entry.Running, h.summary(entry).Err)
	}

	for says, change := range map[string]func(*view.View){
		"holds no committed round":              func(v *view.View) { *v = *view.New() },
		"use the same version on both machines": func(v *view.View) { v.Fold-- },
		"its seconds decrease between commits":  func(v *view.View) { v.Clock.Ticks[3][axis.Seconds] = math.NaN() },
		"its rounds decrease between commits":   func(v *view.View) { v.Clock.Ticks[3][axis.Rounds] = 1e6 },
	} {
		url, end := served(t, shown(change))
		a := askURL(t.Context(), hostLine{Name: "night", URL: url})
		if err := errors.Join(a.err, a.unread); err == nil || !strings.Contains(err.Error(), says) || a.run != nil {
			t.Errorf("%v, want %q", err, says)
		}
		end()
	}
}
