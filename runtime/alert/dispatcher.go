package alert

import (
	"bytes"
	"context"
	"encoding/json"
	goruntime "runtime"
	"sync"
	"time"

	"brood/models/procgroup"
	"brood/runtime/event"
)

const (
	tickEvery      = 5 * time.Second  // between checks for a run that is silent
	commandTimeout = 30 * time.Second // of the command for one alert
	commandGrace   = 3 * time.Second  // of the command for all alerts that wait when the run has ended
	commandQueue   = 16               // alerts that wait for the command; later ones are in the log only
)

// Dispatcher applies the rules of a [Monitor] to a run that trains, and passes each warning and error of its log to a
// command of the user.
type Dispatcher struct {
	// Raise adds an alert to the log of the run. It may block on the goroutine that calls Record; the Dispatcher calls it
	// from others.
	Raise func(Note)

	mu      sync.Mutex // guards monitor
	monitor Monitor
	queue   chan event.Alert // to the command; nil without one
	work    sync.WaitGroup
}

// Record takes the next record of the run and does not block. Calls come one at a time, the first after Start, the last
// before its stop function is called.
func (d *Dispatcher) Record(r event.Record) {
	d.mu.Lock()
	notes := d.monitor.Take(r)
	d.mu.Unlock()
	if len(notes) > 0 {
		d.work.Go(func() { d.raise(notes) })
	}
	if r.Alert != nil && r.Alert.Level != event.LevelInfo && d.queue != nil {
		select {
		case d.queue <- *r.Alert:
		default:
		}
	}
}

// Replay takes a record from before a resume: its alerts are in the log already. It is called before Start.
func (d *Dispatcher) Replay(r event.Record) { _ = d.monitor.Take(r) }

func (d *Dispatcher) raise(notes []Note) {
	for _, n := range notes {
		d.Raise(n)
	}
}

// Start starts a goroutine that checks for silence, and one that runs the command, a line for the shell, for one alert
// after the other; there is none for "". The returned function stops both and waits for them: the command has
// commandGrace for the alerts in the queue, and is killed when ctx is done.
func (d *Dispatcher) Start(ctx context.Context, session, command string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	d.work.Go(func() {
		tick := time.NewTicker(tickEvery)
		defer tick.Stop()
		for {
			select {
			case now := <-tick.C:
				d.mu.Lock()
				notes := d.monitor.Tick(now.UnixNano())
				d.mu.Unlock()
				d.raise(notes)
			case <-over:
				return
			}
		}
	})
	if command != "" {
		d.queue = make(chan event.Alert, commandQueue)
		d.work.Go(func() {
			for a := range d.queue {
				notify(ctx, session, command, a)
			}
		})
	}
	return func() {
		defer cancel()
		close(over)
		if d.queue != nil {
			close(d.queue)
			defer time.AfterFunc(commandGrace, cancel).Stop()
		}
		d.work.Wait()
	}
}

// notify runs the command with an alert as a line of JSON on its standard input. Its status and output are ignored: a
// run does not depend on it.
func notify(ctx context.Context, session, command string, a event.Alert) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	if ctx.Err() != nil {
		return
	}
	shell := []string{"sh", "-c", command}
	if goruntime.GOOS == "windows" {
		shell = []string{"cmd", "/C", command}
	}
	c := procgroup.Command(ctx, shell[0], shell[1:]...)
	c.WaitDelay = time.Second // its background processes may hold its output open
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
