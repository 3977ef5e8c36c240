package host

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"brood/runtime/control"
	"brood/runtime/event"
	"brood/runtime/session"
	"brood/runtime/testutil"
)

// runOrder encodes and decodes an order, as for another process, trains it and returns the hash of the last commit.
// watch may be nil.
func runOrder(t *testing.T, o Order, watch func(*Run, event.Record)) (hash string) {
	t.Helper()
	var text bytes.Buffer
	if err := o.Write(&text); err != nil {
		t.Fatal(err)
	}
	read, err := ReadOrder(&text)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(read, o) {
		t.Fatalf("written as %+v, read as %+v", o, read)
	}
	r, err := read.Open(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var run *Run
	if run, err = Start(r.Job, r.Session, r.From, func(rec event.Record) {
		if rec.Commit != nil {
			hash = rec.Commit.Hash
		}
		if watch != nil {
			watch(run, rec)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := run.Train(testutil.Context(t)); err != nil {
		t.Fatal(err)
	}
	if err := run.Close(); err != nil {
		t.Fatal(err)
	}
	return hash
}

// TestOrder: a run from an encoded order that is interrupted and resumed has the hash of an uninterrupted run, and so
// has a fork of it. A zero limit keeps the recorded one.
func TestOrder(t *testing.T) {
	o := Options{Algorithm: "leader", Members: 3, Workers: 2, Threads: 2, Seed: 5, Limit: event.Limit{Rounds: 300},
		Set: []event.Setting{{Knob: "n", Expr: "500"}}, By: "test"}
	home := t.TempDir()
	whole, cut, branch := filepath.Join(home, "whole"), filepath.Join(home, "cut"), filepath.Join(home, "branch")
	want := runOrder(t, Order{Dir: whole, Options: o}, nil)
	left := runOrder(t, Order{Dir: cut, Options: o}, func(r *Run, rec event.Record) {
		if rec.Commit != nil && rec.Commit.To >= 20 {
			go r.Interrupt()
		}
	})
	if left == want {
		t.Fatal("the run ended before it was interrupted")
	}
	if got := runOrder(t, Order{Dir: cut, Resume: true, Options: Options{Workers: 1, Unattended: true}},
		nil); got != want {
		t.Errorf("resumed %s, uninterrupted %s", got, want)
	}
	if got := runOrder(t, Order{Dir: branch, From: whole, At: 10, Options: Options{By: "fork"}}, nil); got != want {
		t.Errorf("a fork without an edit %s, its parent %s", got, want)
	}
	if x := session.Describe(branch); x.Round != 300 || x.Phase != event.Finished {
		t.Errorf("the fork is %s at round %d", x.Phase, x.Round)
	}
	// nothing, JSON, and CBOR with a key that orders do not have: {"members": 0}
	for _, text := range []string{"", `{"members":0}`, "\xa1\x67members\x00"} {
		if _, err := ReadOrder(strings.NewReader(text)); err == nil ||
			!strings.Contains(err.Error(), "read order of a run: ") {
			t.Errorf("the order %q: %v", text, err)
		}
	}
	if _, err := (Order{Dir: filepath.Join(home, "none"), Resume: true}).Open(t.Context(), nil); err == nil {
		t.Error("a session that does not exist resumes")
	}
}

// TestResumeIsAnnounced: while a resumed run recomputes rounds, its control socket says how far it is.
func TestResumeIsAnnounced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	const rounds = 400
	train(t, dir, prepare(t, tiny(rounds)), nil, nil)
	if err := os.RemoveAll(filepath.Join(dir, session.CheckpointDir)); err != nil {
		t.Fatal(err)
	}
	seen := make(chan control.Ahead, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			if c, err := control.Dial(dir, "ada", false); err == nil {
				ahead, err := c.Ahead(ctx)
				c.Close()
				if err == nil && ahead != nil && ahead.Round > 0 {
					seen <- *ahead
					return
				}
			}
			time.Sleep(time.Millisecond)
		}
	}()
	opened, err := Order{Dir: dir, Resume: true, Options: Options{Limit: event.Limit{Rounds: 2 * rounds}}}.Open(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Session.Close()
	select {
	case a := <-seen:
		if a.Of != rounds || a.Round > rounds {
			t.Errorf("%+v, want a round of %d", a, rounds)
		}
	default:
		t.Error("nothing was announced")
	}
}
