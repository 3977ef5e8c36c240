package remote

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"brood/models/longtest"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/testutil"
	"brood/transport/quic"
)

// TestReattachServed: workers keep their rows when the coordinator is killed. The process that resumes the run
// continues from them: no round is executed again, and no row is transferred. If a worker is gone too, its rows come
// from its mirror, or the state is recomputed. The hash is that of an uninterrupted run.
func TestReattachServed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		onLoss string
		dies   bool // a worker dies with the coordinator
	}{{"reseed", false}, {"mirror", true}, {"rollback", true}} {
		if c.dies && !longtest.On(longtest.Fleets) {
			continue // it waits three seconds for the worker
		}
		t.Run(fmt.Sprintf("%s, a worker dies: %t", c.onLoss, c.dies),
			func(t *testing.T) { t.Parallel(); reattaches(t, c.onLoss, c.dies) })
	}
}

func reattaches(t *testing.T, onLoss string, dies bool) {
	o := small(80)
	o.Workers, o.OnLoss = 3, onLoss
	dir := filepath.Join(t.TempDir(), "run")
	ctx, kill := context.WithCancel(testutil.Context(t))
	s := serve(t, prepare(t, o), nil, dir, func(r event.Record) {
		if r.Commit != nil && r.Commit.To >= 20 {
			kill()
		}
	})
	third, die := context.WithCancel(t.Context())
	defer die()
	for range 2 {
		s.work(t.Context(), s.config())
	}
	s.work(third, s.config())
	if _, err := s.run.Train(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := s.srv.node.Shaper().Set("", quic.Shape{Loss: 1}); err != nil { // the workers receive no goodbye
		t.Fatal(err)
	}
	if dies {
		die()
	}
	if err := errors.Join(s.srv.Close(), s.run.Close()); err != nil {
		t.Fatal(err)
	}
	at := s.sum.To
	r, err := host.Order{Dir: dir, Resume: true, Reattach: true,
		Options: host.Options{Workers: 2, Threads: 1, By: "test", OnLoss: onLoss}}.Open(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.From.Executed != 0 || r.From.Committed().Round != at {
		t.Fatalf("executed %d rounds of %d, %+v", r.From.Executed, at, r.From.Committed())
	}
	again := &served{t: t, dir: dir, sum: s.sum}
	alerts := ""
	again.watch = func(r event.Record) {
		if r.Alert != nil && r.Alert.Kind == event.AlertRecompute {
			alerts += r.Alert.Text
		}
	}
	if again.srv, err = Listen(Config{Dir: dir, Note: again.notes.add}); err != nil {
		t.Fatal(err)
	}
	if again.run, err = again.srv.Serve(r.Job, r.Session, r.From, again.record, 0); err != nil {
		t.Fatal(err)
	}
	if x := again.train(); x.Phase != event.Finished {
		t.Errorf("%+v", x)
	}
	testutil.Wait(t, &s.workers, "end of all workers")
	first := again.plans[0]
	wanted, text := event.Workers, ""
	if dies && onLoss != "mirror" {
		wanted, text = event.Saved, "the workers that returned do not hold all rows"
	}
	if first.From != wanted || first.At != at || (len(first.Mirrored) > 0) != (dies && onLoss == "mirror") ||
		!strings.Contains(alerts, text) || text == "" && alerts != "" {
		t.Errorf("after round %d: %+v\nalerts: %s\nnotes: %s", at, first, alerts, s.notes.text())
	}
	if again.hash != localHash(t, small(again.sum.To)) {
		t.Errorf("after %d rounds the hash differs from that of one process", again.sum.To)
	}
	verifies(t, dir, again.hash)
}
