package host

import (
	"bytes"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"brood/runtime/event"
	"brood/runtime/session"
	"brood/runtime/testutil"
)

// obey trains an order as another process would that reads it.
func obey(t *testing.T, o Order, watch func(*Run, event.Record)) (hash string) {
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

// TestOrder: a run that another process is given as a value, left in the middle, goes on with the bits of one that
// nobody disturbed, and so does a branch of it. A zero limit keeps the one that was.
func TestOrder(t *testing.T) {
	o := Options{Algorithm: "leader", Members: 3, Workers: 2, Threads: 2, Seed: 5, Limit: event.Limit{Rounds: 300},
		Set: []event.Setting{{Knob: "n", Expr: "500"}}, By: "test"}
	home := t.TempDir()
	whole, cut, branch := filepath.Join(home, "whole"), filepath.Join(home, "cut"), filepath.Join(home, "branch")
	want := obey(t, Order{Dir: whole, Options: o}, nil)
	left := obey(t, Order{Dir: cut, Options: o}, func(r *Run, rec event.Record) {
		if rec.Commit != nil && rec.Commit.To >= 20 {
			go r.Interrupt()
		}
	})
	if left == want {
		t.Fatal("it was at its end before it was left")
	}
	if got := obey(t, Order{Dir: cut, Resume: true, Options: Options{Workers: 1, Unattended: true}}, nil); got != want {
		t.Errorf("resumed %s, undisturbed %s", got, want)
	}
	if got := obey(t, Order{Dir: branch, From: whole, At: 10, Options: Options{By: "fork"}}, nil); got != want {
		t.Errorf("a branch without an edit %s, its parent %s", got, want)
	}
	if x := session.Describe(branch); x.Round != 300 || x.Phase != event.Finished {
		t.Errorf("the branch is %s at round %d", x.Phase, x.Round)
	}
	if _, err := ReadOrder(strings.NewReader("")); err == nil || !strings.Contains(err.Error(), "read order of a run") {
		t.Errorf("no order at all: %v", err)
	}
	if _, err := (Order{Dir: filepath.Join(home, "none"), Resume: true}).Open(t.Context(), nil); err == nil {
		t.Error("a session that is not there goes on")
	}
}
