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
	commandGrace   = 3 * time.Second  // of the command for all queued alerts after the end of the run
	commandQueue   = 16               // queued alerts for the command; further ones are only in the log
)

// Dispatcher applies the rules of a [Monitor] to a run that trains, and passes each warning and error of its log to a
// command of the user.
type Dispatcher struct {
	// Raise adds an alert to the log of the run. It may wait for the goroutine that calls Record, so the Dispatcher calls
	// it in other goroutines.
	Raise func(Note)

	mu      sync.Mutex // guards monitor
	monitor Monitor
	queue   chan event.Alert // for the command; nil without a command
	work    sync.WaitGroup
}

// Record applies the rules to the next record of the run without blocking. It must not be called concurrently, before
// Start or after the stop function of Start.
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

// Replay applies a record that was logged before a resume, without its alerts: they are in the log already. It must be
// called before Start.
func (d *Dispatcher) Replay(r event.Record) { _ = d.monitor.Take(r) }

func (d *Dispatcher) raise(notes []Note) {
	for _, n := range notes {
		d.Raise(n)
	}
}

// Start starts a goroutine that checks for a silent run, and, unless command is "", one that runs this shell command
// for each alert in turn. The returned function stops both and waits for them: it kills the command after commandGrace
// for the queued alerts, or when ctx is done.
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

// notify runs the command with the alert as a line of JSON on its standard input. It ignores its status and output.
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
