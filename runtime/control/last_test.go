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

// TestSlowViewer: a viewer whose machine is so busy that it asks again seconds later sees how the run ended, and the
// run ends then. One that never asks does not hold it up for longer than lastLook.
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
						t.Fatalf("it sees %+v, %v", b, err)
					}
					if _, err := c.Next(t.Context(), 2, 10); !errors.Is(err, io.EOF) {
						t.Errorf("and then %v", err)
					}
				}
				<-closed
				if took := time.Since(began); took > lastLook+time.Second || asks && took > 5*time.Second {
					t.Errorf("the control socket closes after %v", took)
				}
			})
		})
	}
}
