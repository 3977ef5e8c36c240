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

// past reads up to `most` records after a position from the log in dir. It returns io.EOF where there is none.
func past(dir string, after uint64, most int) ([]event.Record, error) {
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

// folded is the view of the first `at` records of the log in dir, or of all there are.
func folded(dir string, at uint64) (*view.View, error) {
	r, err := session.OpenReader(dir)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	v := view.New()
	for v.Position < at {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		v.Apply(rec)
	}
	return v, nil
}

// dies is how long the system may take to free the lock of a process whose socket it has closed already.
const dies = 300 * time.Millisecond

// orphaned says that no process records the session any more: what its log holds is all there is.
func (c *Client) orphaned(ctx context.Context) bool {
	if c.dir == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, dies)
	defer cancel()
	for ctx.Err() == nil {
		if running, _ := session.Running(c.dir); !running {
			return true
		}
		select {
		case <-time.After(dies / 30):
		case <-ctx.Done():
		}
	}
	return false
}

// end is what follows the last record of a log without a process: io.EOF, or ErrKilled where the run did not say that
// it ends.
func (c *Client) end() error {
	if session.Describe(c.dir).Phase.Over() {
		return io.EOF
	}
	return view.ErrKilled
}

// rest is the part of such a log after a position.
func (c *Client) rest(after view.Position, most int) (b view.Batch, err error) {
	b.Records, err = past(c.dir, after, max(1, most))
	if errors.Is(err, io.EOF) {
		return b, c.end()
	}
	b.Next = after + uint64(len(b.Records))
	return b, err
}

// remains is the view of such a log where the run has ended.
func (c *Client) remains(at view.Position) (*view.View, error) {
	if err := c.end(); !errors.Is(err, io.EOF) {
		return nil, err
	}
	return folded(c.dir, at)
}
