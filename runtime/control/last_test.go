package control

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"brood/runtime/event"
	"brood/runtime/view"
)

// TestSlowViewer: a slow viewer whose next request comes seconds later gets the end of the run, and Close returns then.
// Close waits for a viewer without further requests no longer than closeTimeout.
func TestSlowViewer(t *testing.T) {
	for name, asks := range map[string]bool{"slow": true, "hanging": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := NewServer("", view.New(), nil)
				here, there := net.Pipe()
				s.wg.Go(func() { s.talk(there) })
				c := NewClient("ada", false, func(context.Context) (net.Conn, error) { return here, nil })
				defer c.Close()
				s.Watch(event.Record{State: &event.State{Phase: event.Training}})
				if _, err := c.Next(t.Context(), 0, 10); err != nil {
					t.Fatal(err)
				}
				s.Watch(event.Record{State: &event.State{Phase: event.Stopped}})
				closed, began := make(chan struct{}), time.Now()
				go func() { defer close(closed); s.Close() }()
				if asks {
					time.Sleep(4 * time.Second)
					b, err := c.Next(t.Context(), 1, 10)
					if err != nil || len(b.Records) != 1 || b.Records[0].State.Phase != event.Stopped {
						t.Fatalf("the viewer gets %+v, %v", b, err)
					}
					if _, err := c.Next(t.Context(), 2, 10); !errors.Is(err, io.EOF) {
						t.Errorf("after the last record: %v", err)
					}
				}
				<-closed
				if took := time.Since(began); took > closeTimeout+time.Second || asks && took > 5*time.Second {
					t.Errorf("the control socket closes after %v", took)
				}
			})
		})
	}
}
