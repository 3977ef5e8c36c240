package control

import (
	"context"
	"errors"
	"io"
	"time"

	"brood/runtime/event"
	"brood/runtime/session"
	"brood/runtime/view"
)

// readLog reads up to most records after a position from the log in dir. It returns io.EOF if there are none.
func readLog(dir string, after uint64, most int) ([]event.Record, error) {
	r, err := session.OpenReader(dir)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if err := r.Seek(after); err != nil {
		return nil, err
	}
	var out []event.Record
	for len(out) < most {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) && len(out) > 0 {
			break
		}
		if err != nil {
			return nil, err
		}
		out = append(out, rec)
	}
	return out, nil
}

// folded returns the view after the first at records of the log in dir, or after all of them if there are fewer.
func folded(dir string, at uint64) (*view.View, error) {
	v := view.New()
	for rec, err := range session.Records(dir) {
		if v.Position >= at {
			break // before damage after it
		}
		if err != nil {
			return nil, err
		}
		v.Apply(rec)
	}
	return v, nil
}

// freeLockWithin is the longest time between the operating system closing the socket of a killed process and freeing
// its lock.
const freeLockWithin = 300 * time.Millisecond

// orphaned reports whether no process records the session any more, so that its log is complete.
func (c *Client) orphaned(ctx context.Context) bool {
	if c.dir == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, freeLockWithin)
	defer cancel()
	for ctx.Err() == nil {
		if running, _ := session.Running(c.dir); !running {
			return true
		}
		select {
		case <-time.After(freeLockWithin / 30):
		case <-ctx.Done():
		}
	}
	return false
}

// end returns the error after the last record of a log without a process: io.EOF, or ErrKilled if the log does not
// record the end of the run.
func (c *Client) end() error {
	if session.Describe(c.dir).Phase.Over() {
		return io.EOF
	}
	return view.ErrKilled
}

// remainingRecords returns the records of the log of an ended or killed run after a position.
func (c *Client) remainingRecords(after view.Position, most int) (b view.Batch, err error) {
	b.Records, err = readLog(c.dir, after, max(1, most))
	if errors.Is(err, io.EOF) {
		return b, c.end()
	}
	b.Next = after + uint64(len(b.Records))
	return b, err
}

// finalView returns the view of the log of an ended run, and ErrKilled for a killed one.
func (c *Client) finalView(at view.Position) (*view.View, error) {
	if err := c.end(); !errors.Is(err, io.EOF) {
		return nil, err
	}
	return folded(c.dir, at)
}
