// Package replay plays a recorded log as a source of the workbench: at a speed, paused, or from any record.
package replay

import (
	"context"
	"errors"
	"io"
	"math"
	"sync"
	"time"

	"github.com/fxamacker/cbor/v2"

	"brood/runtime/event"
	"brood/runtime/session"
	"brood/runtime/view"
)

// Log is a recorded run, used by one goroutine at a time. session.Reader implements it.
type Log interface {
	Next() (event.Record, error) // io.EOF at the end
	Seek(n uint64) error         // Next returns record n next
}

// Keyframer is optionally implemented by a Log that has saved views as CBOR, so that a seek need not fold from the
// start. Keyframe returns the newest one with record <= before; the payload is the state before that record.
type Keyframer interface {
	Keyframe(before uint64) (record uint64, payload []byte, ok bool, err error)
}

// Beginner is optionally implemented by a Log that may begin after record 0.
type Beginner interface {
	First() uint64 // number of its first record
}

// Replay plays a recorded run at a given speed, without the pauses between sessions. It is a Source. The caller holds
// the position as `after`, so a seek is a new Snapshot. Its methods are safe for concurrent use.
type Replay struct {
	reading sync.Mutex // guards log and what was read from it, up to scan
	log     Log
	at      view.Position // position of log
	ahead   []event.Record
	keys    []*view.View // cached views, ascending by position
	scan    scan         // has its own lock for what a frame shows

	control sync.Mutex // guards the fields below
	paused  bool
	speed   float64
	changed chan struct{} // closed and replaced by Pause and SetSpeed
	sent    time.Time     // when the last batch was returned
	first   int64         // record time of the first record of that batch
	next    view.Position // position after that batch
	cut     time.Duration // the last gap that was shortened
	cutAt   time.Time     // when it was shortened; zero: never
	Clock   func() time.Time
}

const (
	KeyEvery  = 1 << 13          // records between cached views
	Frame     = time.Second / 30 // records within one frame form a batch
	longest   = time.Second      // longest gap between records that is played in full, at speed 1
	CutShown  = 4 * time.Second  // how long Cut reports a shortened gap
	scanChunk = 2048             // records read under one lock
)

// NewReplay returns a replay from the first record. The replay owns the log until its last method has returned.
func NewReplay(l Log) *Replay {
	return &Replay{
		log:     l,
		at:      math.MaxUint64,
		speed:   1,
		changed: make(chan struct{}),
		Clock:   time.Now,
		scan:    scan{view: view.New()},
	}
}

// Sayer is optionally implemented by a Log that has the output of the processes of the run.
type Sayer interface {
	ProcessLog() ([]session.Line, error)
}

// ProcessLog returns the output of the processes of the run, for the log panel.
func (r *Replay) ProcessLog(context.Context) ([]session.Line, error) {
	if s, ok := r.log.(Sayer); ok {
		return s.ProcessLog()
	}
	return nil, nil
}

// Snapshot folds from the nearest known view. At the end of the log it returns the last view.
func (r *Replay) Snapshot(ctx context.Context, at view.Position) (*view.View, error) {
	r.reading.Lock()
	defer r.reading.Unlock()
	v := r.nearest(at)
	for v.Position < at {
		if v.Position%256 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		rec, err := r.read(v.Position)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		v.Apply(rec)
		r.keep(v)
	}
	return v, nil
}

// nearest returns the newest cached or saved view at or before a position. The caller owns it.
func (r *Replay) nearest(at view.Position) *view.View {
	best := view.New()
	for _, k := range r.keys {
		if k.Position <= at {
			best = k
		}
	}
	k, ok := r.log.(Keyframer)
	if !ok || at-best.Position < KeyEvery {
		return best.Clone()
	}
	if n, payload, ok, err := k.Keyframe(min(at, math.MaxInt64)); err == nil && ok && n > best.Position && n <= at {
		var v view.View
		if cbor.Unmarshal(payload, &v) == nil && v.Position == n && v.Fold == view.Fold {
			return &v
		}
	}
	return best.Clone()
}

// keep caches a clone of a view at each multiple of KeyEvery.
func (r *Replay) keep(v *view.View) {
	if v.Position%KeyEvery != 0 {
		return
	}
	i := len(r.keys)
	for i > 0 && r.keys[i-1].Position >= v.Position {
		if i--; r.keys[i].Position == v.Position {
			return
		}
	}
	r.keys = append(r.keys[:i:i], append([]*view.View{v.Clone()}, r.keys[i:]...)...)
}

// from returns the number of the first record of the log at or after n.
func (r *Replay) from(n view.Position) view.Position {
	if b, ok := r.log.(Beginner); ok {
		return max(n, b.First())
	}
	return n
}

// read returns record n, or the first one of the log if n was removed. The caller holds r.reading.
func (r *Replay) read(n view.Position) (event.Record, error) {
	n = r.from(n)
	if i := n - (r.at - view.Position(len(r.ahead))); i < uint64(len(r.ahead)) {
		return r.ahead[i], nil
	}
	if n != r.at {
		r.ahead, r.at = nil, math.MaxUint64 // the position is unknown if Seek fails
		if err := r.log.Seek(n); err != nil {
			return event.Record{}, err
		}
		r.at = n
	}
	rec, err := r.log.Next()
	if err == nil {
		r.at++
		r.ahead = nil
	}
	return rec, err
}

// Next waits until the next batch is due and returns the records within one frame at the current speed, at most
// `most`.
func (r *Replay) Next(ctx context.Context, after view.Position, most int) (view.Batch, error) {
	out := view.Batch{Next: after}
	first, err := r.peek(after)
	if err != nil {
		return out, err
	}
	for {
		wait, changed := r.Wait(after, first.At)
		if wait <= 0 {
			break
		}
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return out, ctx.Err()
		case <-changed:
			t.Stop()
		case <-t.C:
		}
	}
	r.control.Lock()
	until := first.At + int64(float64(Frame)*r.speed)
	r.control.Unlock()
	r.reading.Lock()
	defer r.reading.Unlock()
	out.Next = r.from(after)
	for len(out.Records) < max(1, most) {
		rec, err := r.read(out.Next)
		if err != nil && len(out.Records) == 0 {
			return out, err
		}
		if err != nil || len(out.Records) > 0 && rec.At > until {
			r.ahead = nil
			if err == nil {
				r.ahead = []event.Record{rec}
			}
			break
		}
		out.Records, out.Next = append(out.Records, rec), out.Next+1
	}
	r.control.Lock()
	r.sent, r.first, r.next = r.Clock(), first.At, out.Next
	r.control.Unlock()
	return out, nil
}

func (r *Replay) peek(n view.Position) (event.Record, error) {
	r.reading.Lock()
	defer r.reading.Unlock()
	rec, err := r.read(n)
	if err == nil {
		r.ahead = []event.Record{rec}
	}
	return rec, err
}

// Wait returns the time until a batch after `after` is due, and a channel that is closed when that changes: the
// longest duration while paused, 0 after a seek.
func (r *Replay) Wait(after view.Position, at int64) (time.Duration, <-chan struct{}) {
	r.control.Lock()
	defer r.control.Unlock()
	switch {
	case r.paused:
		return math.MaxInt64, r.changed
	case after != r.next || r.sent.IsZero():
		return 0, r.changed
	}
	gap := max(0, time.Duration(at-r.first))
	if gap > longest {
		r.cut, r.cutAt, gap = gap, r.Clock(), longest
	}
	return r.sent.Add(time.Duration(float64(gap) / r.speed)).Sub(r.Clock()), r.changed
}

// Cut returns the length of the gap that is being shortened, or was a moment ago.
func (r *Replay) Cut() (time.Duration, bool) {
	r.control.Lock()
	defer r.control.Unlock()
	shown := CutShown + time.Duration(float64(longest)/r.speed)
	return r.cut, !r.cutAt.IsZero() && r.Clock().Sub(r.cutAt) < shown
}

func (r *Replay) change(f func()) {
	r.control.Lock()
	defer r.control.Unlock()
	f()
	close(r.changed)
	r.changed = make(chan struct{})
}

// Pause pauses (on) or resumes the replay.
func (r *Replay) Pause(on bool) { r.change(func() { r.paused = on }) }

// SetSpeed sets the speed relative to recorded time. It limits x to [1/64, 4096].
func (r *Replay) SetSpeed(x float64) { r.change(func() { r.speed = min(max(x, 1.0/64), 4096) }) }

// Playing reports whether the replay runs, and its speed.
func (r *Replay) Playing() (on bool, speed float64) {
	r.control.Lock()
	defer r.control.Unlock()
	return !r.paused, r.speed
}
