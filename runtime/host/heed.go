package host

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	goruntime "runtime"
	"sync"
	"time"

	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/watch"
)

// What is known of the time while nothing happens, and how long a command may take that is told of an alert.
const (
	heedEvery = 5 * time.Second
	tellFor   = 30 * time.Second
	tellLast  = 3 * time.Second // for all that are left when the run has ended
	tellMost  = 16              // alerts that wait for their turn; what comes beyond them is in the log alone
)

// heed watches a run: it raises what a person would want to hear of, and tells a command of each warning and error.
type heed struct {
	mu    sync.Mutex
	watch watch.Watch
	note  func(coordinator.Note) // may wait for the fleet's loop
	tell  chan event.Alert       // nil: there is no command
	work  sync.WaitGroup
}

// take is told of each record, on the fleet's loop.
func (h *heed) take(rec event.Record) {
	h.mu.Lock()
	notes := h.watch.Take(rec)
	h.mu.Unlock()
	if len(notes) > 0 {
		h.work.Go(func() { h.raise(notes) })
	}
	if rec.Alert != nil && rec.Alert.Level != event.LevelInfo && h.tell != nil {
		select {
		case h.tell <- *rec.Alert:
		default:
		}
	}
}

func (h *heed) raise(notes []watch.Note) {
	for _, n := range notes {
		h.note(coordinator.Note{Level: n.Level, Kind: n.Kind, Text: n.Text})
	}
}

// begin lets time pass and calls the command, one alert after the other, until end is called, which gives it a moment
// more. It begins before the fleet does and ends after it. What leaves at once, ctx, leaves the command too.
func (h *heed) begin(ctx context.Context, session, command string) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	h.work.Go(func() {
		tick := time.NewTicker(heedEvery)
		defer tick.Stop()
		for {
			select {
			case now := <-tick.C:
				h.mu.Lock()
				notes := h.watch.Tick(now.UnixNano())
				h.mu.Unlock()
				h.raise(notes)
			case <-over:
				return
			}
		}
	})
	if command != "" {
		h.tell = make(chan event.Alert, tellMost)
		h.work.Go(func() {
			for a := range h.tell {
				call(ctx, session, command, a)
			}
		})
	}
	return func() {
		defer cancel()
		close(over)
		if h.tell != nil {
			close(h.tell)
			defer time.AfterFunc(tellLast, cancel).Stop()
		}
		h.work.Wait()
	}
}

// call runs a command of the person's with an alert: as a line of JSON on its standard input. What comes of it is its
// own affair: a run does not depend on it.
func call(ctx context.Context, session, command string, a event.Alert) {
	ctx, cancel := context.WithTimeout(ctx, tellFor)
	defer cancel()
	if ctx.Err() != nil {
		return
	}
	shell := []string{"sh", "-c", command}
	if goruntime.GOOS == "windows" {
		shell = []string{"cmd", "/C", command}
	}
	c := exec.CommandContext(ctx, shell[0], shell[1:]...)
	c.WaitDelay = time.Second // what it began in the background may have its output open
	whole(c)
	text, err := json.Marshal(struct {
		Session string `json:"session"`
		Round   uint64 `json:"round"`
		Level   string `json:"level"`
		Kind    string `json:"kind"`
		Text    string `json:"text"`
	}{session, a.Round, string(a.Level), string(a.Kind), a.Text})
	if err != nil {
		return
	}
	c.Stdin = bytes.NewReader(append(text, '\n'))
	_ = c.Run()
}
