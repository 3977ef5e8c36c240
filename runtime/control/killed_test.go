package control

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

// TestSuspended: a process that is suspended accepts connections and answers nothing. Each request fails after some
// seconds, and a command says that it may still be applied.
func TestSuspended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewClient("ada", false, func(context.Context) (net.Conn, error) {
			here, there := net.Pipe()
			go func() {
				_, _ = io.Copy(io.Discard, there)
				there.Close()
			}()
			return here, nil
		})
		defer c.Close()
		silent := regexp.MustCompile(`it did not answer for \d+ s`)
		for what, ask := range map[string]func(context.Context) error{
			"records of a frame": func(ctx context.Context) error {
				ctx, cancel := context.WithTimeout(ctx, time.Second/7)
				defer cancel()
				_, err := c.Next(ctx, 0, 10)
				return err
			},
			"records":  func(ctx context.Context) error { _, err := c.Next(ctx, 0, 10); return err },
			"snapshot": func(ctx context.Context) error { _, err := c.Snapshot(ctx, 1<<62); return err },
			"workers":  func(ctx context.Context) error { _, err := c.Fleet(ctx); return err },
			"command":  func(ctx context.Context) error { _, err := c.Command(ctx, event.Command{}); return err },
		} {
			began := time.Now()
			err := ask(t.Context())
			if took := time.Since(began); err == nil || !silent.MatchString(err.Error()) ||
				took > 10*time.Second || strings.Contains(err.Error(), "may still") != (what == "command") {
				t.Errorf("%s, after %s: %v", what, took, err)
			}
		}
	})
}

// TestSlowAnswer: an answer that takes longer than the patience of a client, on a slow network, is read to its end.
func TestSlowAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewClient("ada", false, func(context.Context) (net.Conn, error) {
			here, there := net.Pipe()
			go func() {
				defer there.Close()
				var q request
				if receive(there, maxMessage, &q) != nil {
					return
				}
				var all bytes.Buffer
				_ = transmit(&all, answer{View: view.New()})
				for part := range slices.Chunk(all.Bytes(), 1+all.Len()/10) {
					time.Sleep(longPatience / 2)
					if _, err := there.Write(part); err != nil {
						return
					}
				}
			}()
			return here, nil
		})
		defer c.Close()
		if _, err := c.Snapshot(t.Context(), 1<<62); err != nil {
			t.Error(err)
		}
	})
}
