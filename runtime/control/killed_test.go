package control

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"testing"

	"brood/runtime/event"
	"brood/runtime/session"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
)

// TestServerThatDies: a broken connection is not the end of the run.
func TestServerThatDies(t *testing.T) {
	here, there := net.Pipe()
	c := NewClient("ada", false, func(context.Context) (net.Conn, error) { return here, nil })
	go func() {
		var q request
		_ = receive(there, maxMessage, &q)
		there.Close()
	}()
	if _, err := c.Next(t.Context(), 0, 10); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("after the death of the server: %v", err)
	}
}

// TestKilled: if the process of a session has ended, a client returns the other records of the log and then its end.
func TestKilled(t *testing.T) {
	for name, ends := range map[string]bool{"killed": false, "finished": true} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "s")
			s, err := session.Create(dir)
			if err != nil {
				t.Fatal(err)
			}
			rs := sourcetest.Run(2, 20)
			if ends {
				rs = append(rs, event.Record{At: rs[len(rs)-1].At, State: &event.State{Phase: event.Finished, Round: 20}})
			}
			for _, r := range rs {
				if err := s.Append(r); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			c := local(dir, "ada", false)
			defer c.Close()
			v, most := view.New(), 7
			for v.Position < uint64(len(rs)) {
				b, err := c.Next(t.Context(), v.Position, most)
				if err != nil || len(b.Records) == 0 || len(b.Records) > most {
					t.Fatalf("after %d of %d records: %d, %v", v.Position, len(rs), len(b.Records), err)
				}
				for _, r := range b.Records {
					v.Apply(r)
				}
			}
			want := view.ErrKilled
			if ends {
				want = io.EOF
			}
			if _, err := c.Next(t.Context(), v.Position, most); !errors.Is(err, want) {
				t.Errorf("after the last record: %v, want %v", err, want)
			}
			now, err := c.Snapshot(t.Context(), 1<<62)
			if ends && (err != nil || now.Position != v.Position || !now.Over()) || !ends && !errors.Is(err, view.ErrKilled) {
				t.Errorf("snapshot %+v, %v", now, err)
			}
		})
	}
}
