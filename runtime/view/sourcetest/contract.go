package sourcetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"brood/runtime/event"
	"brood/runtime/view"
)

// Source is panel.Source, stated here so that packages below tui can run the contract.
type Source interface {
	Snapshot(ctx context.Context, at view.Position) (*view.View, error)
	Next(ctx context.Context, after view.Position, max int) (view.Batch, error)
}

// Contract checks a source that serves exactly these records (at least three). When ends is true nothing follows them
// and Next must say io.EOF; else it must wait.
func Contract(t *testing.T, s Source, rs []event.Record, ends bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	want := func(n int) *view.View {
		v := view.New()
		for _, r := range rs[:n] {
			v.Apply(r)
		}
		return v
	}
	for _, n := range []int{0, 1, len(rs) / 2, len(rs)} {
		v, err := s.Snapshot(ctx, uint64(n))
		if err != nil {
			t.Fatalf("snapshot at %d: %v", n, err)
		}
		if err := Same(v, want(n)); err != nil {
			t.Errorf("snapshot at %d: %v", n, err)
		}
	}
	now, err := s.Snapshot(ctx, math.MaxUint64)
	if err != nil {
		t.Fatalf("snapshot of now: %v", err)
	}
	if err := Same(now, want(len(rs))); err != nil {
		t.Errorf("snapshot of now: %v", err)
	}
	for _, most := range []int{1, 3, 1 << 20} {
		v, err := follow(ctx, s, want(0), uint64(len(rs)), most)
		if err != nil {
			t.Fatalf("by %d: %v", most, err)
		}
		if err := Same(v, now); err != nil {
			t.Errorf("following by %d: %v", most, err)
		}
	}
	half, _ := s.Snapshot(ctx, uint64(len(rs)/2))
	v, err := follow(ctx, s, half, uint64(len(rs)), 2)
	if err != nil {
		t.Fatalf("from a snapshot: %v", err)
	}
	if err := Same(v, now); err != nil {
		t.Errorf("a snapshot and what follows it: %v", err)
	}
	if again, _ := s.Snapshot(ctx, uint64(len(rs)/2)); Same(again, want(len(rs)/2)) != nil {
		t.Errorf("applying records to a snapshot changed a later one: the view must be the caller's")
	}
	end(t, ctx, s, uint64(len(rs)), ends)
}

func end(t *testing.T, ctx context.Context, s Source, at view.Position, ends bool) {
	t.Helper()
	short, cancel := context.WithTimeout(ctx, 30*time.Millisecond)
	defer cancel()
	b, err := s.Next(short, at, 10)
	switch {
	case len(b.Records) > 0:
		t.Errorf("%d records follow the last one", len(b.Records))
	case ends && !errors.Is(err, io.EOF):
		t.Errorf("after the last record: %v, want io.EOF", err)
	case !ends && !errors.Is(err, context.DeadlineExceeded):
		t.Errorf("waiting for a record: %v, want the context's error", err)
	}
}

func follow(ctx context.Context, s Source, v *view.View, to view.Position, most int) (*view.View, error) {
	for v.Position < to {
		b, err := s.Next(ctx, v.Position, most)
		if err != nil {
			return nil, fmt.Errorf("next after %d: %w", v.Position, err)
		}
		if len(b.Records) < 1 || len(b.Records) > most || b.Next != v.Position+uint64(len(b.Records)) {
			return nil, fmt.Errorf("next after %d, at most %d: %d records up to %d", v.Position, most, len(b.Records), b.Next)
		}
		for _, r := range b.Records {
			v.Apply(r)
		}
	}
	return v, nil
}

// Same says how two views differ, by their encoding.
func Same(a, b *view.View) error {
	x, err := cbor.Marshal(a)
	if err != nil {
		return err
	}
	y, err := cbor.Marshal(b)
	if err != nil {
		return err
	}
	if !bytes.Equal(x, y) {
		return fmt.Errorf("views differ: positions %d and %d, %d and %d bytes", a.Position, b.Position, len(x), len(y))
	}
	return nil
}
