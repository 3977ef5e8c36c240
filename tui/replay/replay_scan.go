package replay

import (
	"context"
	"errors"
	"io"
	"sort"
	"time"

	"brood/runtime/event"
	"brood/runtime/view"
)

// scan is the state of one pass over a log.
type scan struct {
	view    *view.View
	done    bool
	commits []landmark // every stride-th commit; stride is a power of two
	stride  int
	skip    int
	events  []view.Position // positions after records that added an event
}

type landmark struct {
	round uint64
	at    view.Position // position after the commit and the evaluation of its round
}

// Extent is the known length of a recording. It grows until Whole is set.
type Extent struct {
	Records view.Position
	Rounds  uint64
	Elapsed time.Duration // of training
	Whole   bool
	Phase   event.Phase // at the end, once Whole
}

// Extent returns the length that Scan has found so far.
func (r *Replay) Extent() Extent {
	r.reading.Lock()
	defer r.reading.Unlock()
	v := r.scan.view
	e := Extent{v.Position, v.Progress.Rounds, v.Elapsed(), r.scan.done, ""}
	if e.Whole {
		e.Phase = v.State.Phase
	}
	return e
}

// Scan reads the whole log once, so that its length is known and seeks are short. It releases the log between chunks
// of scanChunk records.
func (r *Replay) Scan(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if done, err := r.advance(); done || err != nil {
			return err
		}
	}
}

func (r *Replay) advance() (done bool, err error) {
	r.reading.Lock()
	defer r.reading.Unlock()
	s := &r.scan
	for i := 0; i < scanChunk && !s.done; i++ {
		rec, err := r.read(s.view.Position)
		if errors.Is(err, io.EOF) {
			s.done = true
			break
		}
		if err != nil {
			return false, err
		}
		before := s.view.Events
		s.view.Apply(rec)
		r.keep(s.view)
		if s.view.Events != before {
			s.events = append(s.events, s.view.Position)
		}
		s.landmark(rec)
	}
	return s.done, nil
}

const maxLandmarks = 1 << 14

func (s *scan) landmark(rec event.Record) {
	if n := len(s.commits); n > 0 && rec.Evaluation != nil && rec.Evaluation.Round == s.commits[n-1].round {
		s.commits[n-1].at = s.view.Position
	}
	if rec.Commit == nil {
		return
	}
	if s.skip--; s.skip > 0 {
		return
	}
	s.stride = max(s.stride, 1)
	s.skip = s.stride
	s.commits = append(s.commits, landmark{rec.Commit.To, s.view.Position})
	if len(s.commits) >= maxLandmarks {
		for i := range maxLandmarks / 2 {
			s.commits[i] = s.commits[2*i]
		}
		s.commits, s.stride = s.commits[:maxLandmarks/2], 2*s.stride
	}
}

// Round returns the position after the first known commit at or beyond a round, and after the evaluation of that
// round; the end of the log if there is none. It scans on as needed.
func (r *Replay) Round(ctx context.Context, round uint64) (view.Position, error) {
	for {
		r.reading.Lock()
		s := &r.scan
		i := sort.Search(len(s.commits), func(i int) bool { return s.commits[i].round >= round })
		at, found := s.view.Position, s.done
		if i < len(s.commits) {
			at, found = s.commits[i].at, s.done || s.view.Progress.Rounds > s.commits[i].round
		}
		r.reading.Unlock()
		if found {
			return at, nil
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if _, err := r.advance(); err != nil {
			return 0, err
		}
	}
}

// Step returns the position of the next (d > 0) or previous commit, or event if events is set, among those scanned so
// far; from if there is none.
func (r *Replay) Step(from view.Position, d int, events bool) view.Position {
	r.reading.Lock()
	defer r.reading.Unlock()
	n, at := len(r.scan.commits), func(i int) view.Position { return r.scan.commits[i].at }
	if events {
		n, at = len(r.scan.events), func(i int) view.Position { return r.scan.events[i] }
	}
	i := sort.Search(n, func(i int) bool { return at(i) >= from })
	switch {
	case d < 0 && i > 0:
		return at(i - 1)
	case d > 0 && i < n && at(i) > from:
		return at(i)
	case d > 0 && i+1 < n:
		return at(i + 1)
	}
	return from
}
