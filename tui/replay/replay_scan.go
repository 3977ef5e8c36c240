package replay

import (
	"context"
	"errors"
	"io"
	"slices"
	"sort"
	"sync"
	"time"

	"brood/runtime/event"
	"brood/runtime/view"
)

// scan is one pass over a log.
type scan struct {
	view *view.View // guarded by Replay.reading
	skip int        // commits before the next landmark; guarded by Replay.reading
	open bool       // records of the newest landmark's rounds may follow; guarded by Replay.reading
	last view.Mark  // newest mark of the view; guarded by Replay.reading

	mu      sync.Mutex // guards the fields below, for short times: a frame may wait for it
	extent  Extent
	commits []landmark // every stride-th commit, by position; stride is a power of two
	stride  int
	marks   []Mark // by position; only appended to
	scored  int    // evaluations among the marks
}

type landmark struct {
	round uint64
	at    view.Position // position after the commit, and the points and evaluations of its rounds
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
	r.scan.mu.Lock()
	defer r.scan.mu.Unlock()
	return r.scan.extent
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
	for i := 0; i < scanChunk && !done; i++ {
		rec, err := r.read(s.view.Position)
		switch {
		case errors.Is(err, io.EOF):
			done = true
		case err != nil:
			return false, err
		default:
			s.view.Apply(rec)
			r.keep(s.view)
			s.add(rec)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.extent = Extent{Records: s.view.Position, Rounds: s.view.Progress.Rounds, Elapsed: s.view.Elapsed(), Whole: done}
	if done {
		s.extent.Phase = s.view.State.Phase
	}
	return done, nil
}

const maxLandmarks = 1 << 14

// add adds the marks and the landmark of a record that the view has applied.
func (s *scan) add(rec event.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mark(rec)
	if s.open { // a commit is recorded before the points and evaluations of its rounds
		l := &s.commits[len(s.commits)-1]
		switch {
		case rec.Commit != nil, rec.Plan != nil:
			s.open = false
		case rec.Points != nil && rec.Points.Round <= l.round,
			rec.Evaluation != nil && rec.Evaluation.Round <= l.round:
			l.at = s.view.Position
		}
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
	s.open = true
	if len(s.commits) >= maxLandmarks {
		for i := range maxLandmarks / 2 {
			s.commits[i] = s.commits[2*i]
		}
		s.commits, s.stride, s.open = s.commits[:maxLandmarks/2], 2*s.stride, false
	}
}

// Round returns the position after the first known commit at or beyond a round, and after the points and evaluations of
// its rounds; the end of the log if there is none. It scans on as needed.
func (r *Replay) Round(ctx context.Context, round uint64) (view.Position, error) {
	for {
		at, found := r.scan.find(round)
		if e := r.Extent(); e.Whole || found && e.Rounds > round {
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

// Known is Round among the commits that were scanned so far. It does not wait. Round 0 is the beginning of the log.
func (r *Replay) Known(round uint64) view.Position {
	if round == 0 {
		return 0
	}
	at, _ := r.scan.find(round)
	return at
}

// find returns the position of the first landmark at or beyond a round. ok is false if there is none: then it is the
// end of what was scanned. After a rollback the rounds of landmarks do not ascend.
func (s *scan) find(round uint64) (at view.Position, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.commits, func(l landmark) bool { return l.round >= round }); i >= 0 {
		return s.commits[i].at, true
	}
	return s.extent.Records, false
}

// RoundAt returns the round of the last known commit at or before a position; 0 if there is none.
func (r *Replay) RoundAt(at view.Position) uint64 {
	s := &r.scan
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := sort.Search(len(s.commits), func(i int) bool { return s.commits[i].at > at }); i > 0 {
		return s.commits[i-1].round
	}
	return 0
}

// Step returns the position of the next (d > 0) or previous commit among those scanned so far; from if there is none.
func (r *Replay) Step(from view.Position, d int) view.Position {
	s := &r.scan
	s.mu.Lock()
	defer s.mu.Unlock()
	i := sort.Search(len(s.commits), func(i int) bool { return s.commits[i].at >= from })
	if d > 0 && i < len(s.commits) && s.commits[i].at == from {
		i++
	}
	switch {
	case d < 0 && i > 0:
		return s.commits[i-1].at
	case d > 0 && i < len(s.commits):
		return s.commits[i].at
	}
	return from
}
