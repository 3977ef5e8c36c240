package host

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"brood/runtime/alert"
	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/option"
	"brood/runtime/session"
	"brood/runtime/view"
)

// shortening removes the oldest records of the log of a run, as the option keep-log says. The log then begins at a
// checkpoint, like that of a branch.
type shortening struct {
	sess  *session.Session
	bytes int64         // limit of the log's size without its beginning; 0: none
	age   time.Duration // time that stays at least; 0: no limit
	note  func(coordinator.Note)

	oldest atomic.Int64 // time of the first plan in the log
	tried  int64        // size of the log at the last attempt; guarded by busy
	head   int64        // bytes of its beginning; guarded by busy
	warned bool         // that the log cannot be shortened; guarded by busy

	files  sync.Mutex        // held while files of checkpoints are removed
	begins *event.Checkpoint // where the log begins; nil: an attempt of this process has not moved it; guarded by files
	next   *event.Checkpoint // where an attempt lets it begin, nil without one; guarded by files
	busy   sync.Mutex        // held by the one attempt at a time
	done   sync.WaitGroup
	cancel context.CancelFunc
	ctx    context.Context
}

// newShortening returns the shortening of a run with these options, for a log that takes its records from sess.
func newShortening(o Options, sess *session.Session, note func(coordinator.Note)) *shortening {
	s := &shortening{sess: sess, note: note}
	s.bytes, s.age, _ = option.ParseKeepLog(option.KeepLog.Text(o)) // the options were checked
	if s.bytes > 0 || s.age > 0 {
		s.head = beginningBytes(sess.Dir())
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// close ends an attempt and waits for it.
func (s *shortening) close() {
	s.cancel()
	s.done.Wait()
}

// track takes each record of the log.
func (s *shortening) track(rec event.Record) {
	if rec.Plan != nil {
		s.oldest.CompareAndSwap(0, rec.At)
	}
}

// start begins an attempt in the background if rec, the newest record, is a checkpoint, and the log is over its limit
// and has grown by an eighth since the last attempt. Only the event loop calls it.
func (s *shortening) start(rec event.Record) {
	if rec.Checkpoint == nil || s.bytes == 0 && s.age == 0 || !s.busy.TryLock() {
		return
	}
	size, _, _ := session.LogSize(s.sess.Dir())
	size -= s.head
	due := s.bytes > 0 && size > s.bytes && size-s.tried > s.bytes/8 ||
		s.age > 0 && time.Duration(rec.At-s.oldest.Load()) > s.age+s.age/2 && size-s.tried > size/8
	if !due {
		s.busy.Unlock()
		return
	}
	s.tried = size
	s.done.Go(func() {
		defer s.busy.Unlock()
		s.attempt(rec.At)
	})
}

// attempt shortens the log if it has a place to begin later. now is the time of the newest record.
func (s *shortening) attempt(now int64) {
	c, removed, err := s.shorten(now)
	n := coordinator.Note{Level: event.LevelInfo, Kind: event.AlertLog}
	switch {
	case s.ctx.Err() != nil:
		return
	case err == nil && c == nil:
		twice := s.bytes > 0 && s.tried > 2*s.bytes || s.age > 0 && time.Duration(now-s.oldest.Load()) > 4*s.age
		if s.warned || !twice {
			return
		}
		s.warned, n.Level = true, event.LevelWarning
		n.Text = "the log stays longer than --keep-log says: it cannot begin after the last good state of the run, " +
			"and older checkpoints are too near to its beginning"
	case err != nil:
		n.Level, n.Text = event.LevelWarning, fmt.Sprintf("the log was not shortened: %v", err)
	default:
		s.tried, s.head = 0, beginningBytes(s.sess.Dir())
		s.oldest.Store(c.at)
		n.Text = fmt.Sprintf("the log begins after round %d: %d older records were removed (--keep-log)", c.saved.Round,
			removed)
	}
	s.note(n)
}

func (s *shortening) shorten(now int64) (c *place, removed uint64, err error) {
	dir := s.sess.Dir()
	places, total, first, err := findPlaces(s.ctx, dir)
	if err != nil {
		return nil, 0, err
	}
	total -= s.head
	for i := range places {
		places[i].offset -= s.head
	}
	if c = s.choose(places, total, now); c == nil {
		return nil, 0, nil
	}
	head, err := c.head(s.ctx, dir)
	if err != nil {
		return nil, 0, err
	}
	s.pin(&c.saved)
	if err = intact(dir, &c.saved); err == nil { // its files may have been removed before they were pinned
		err = s.sess.Shorten(c.n, head)
	}
	s.unpin(err == nil)
	if err != nil {
		return nil, 0, err
	}
	return c, c.n - first, nil
}

// beginningBytes returns the size of the records that stand in for removed ones in the log in dir; 0 if it has all.
func beginningBytes(dir string) int64 {
	r, err := session.OpenReader(dir)
	if err != nil {
		return 0
	}
	defer r.Close()
	rec, err := r.Next()
	if err != nil || rec.Config == nil || rec.Config.Begins == nil {
		return 0
	}
	return r.Offset() // of its frame, which has few other records
}

// pin sets a checkpoint whose files stay in addition to that of the log's beginning: a process that is killed now
// leaves the log with the old or the new one.
func (s *shortening) pin(cp *event.Checkpoint) {
	s.files.Lock()
	defer s.files.Unlock()
	s.next = cp
}

// unpin ends pin. moved reports whether the log begins at the checkpoint now.
func (s *shortening) unpin(moved bool) {
	s.files.Lock()
	defer s.files.Unlock()
	if moved {
		s.begins = s.next
	}
	s.next = nil
}

// choose returns the place where the log is to begin: the oldest that leaves three quarters of the limit, so that the
// log may grow until the next attempt, or the newest that leaves the time; nil if there is none worth it.
func (s *shortening) choose(places []place, total, now int64) (best *place) {
	for i := range places {
		c := &places[i]
		switch {
		case c.offset < total/8:
		case s.age > 0 && c.at <= now-int64(s.age):
			best = c
		case s.bytes > 0 && (best == nil || total-best.offset > 3*s.bytes/4):
			best = c
		}
	}
	return best
}

// place is where a log may begin: after the commit of a checkpoint and the measurements of its round.
type place struct {
	saved  event.Checkpoint
	n      uint64 // number of the first record to keep
	offset int64  // bytes of the log before the commit
	at     int64  // time of the commit
}

// findPlaces returns the places where the log in dir may begin, in their order, the bytes of the log, and the number of
// its first record. A checkpoint is such a place if its files exist, no later plan went back to a round before it,
// commits follow, and it is not newer than the last good one, to which a run in trouble returns. Without probes of the
// centre all are good.
func findPlaces(ctx context.Context, dir string) (places []place, total int64, first uint64, err error) {
	files, err := session.Checkpoints(dir)
	if err != nil {
		return nil, 0, 0, err
	}
	var good coordinator.LastGood
	probed := false
	var epoch uint32
	var last event.Commit
	commits := map[uint64]*place{} // by round, after the last checkpoint
	var newest *place
	r, err := session.OpenReader(dir)
	if err != nil {
		return nil, 0, 0, err
	}
	defer r.Close()
	first = r.First()
	err = eachRecord(ctx, r, func(n uint64, rec event.Record) {
		good.Take(rec)
		probed = probed || rec.Points != nil && rec.Points.Series == event.SeriesCentre
		switch {
		case rec.Plan != nil:
			epoch = rec.Plan.Epoch
			clear(commits)
			places = slices.DeleteFunc(places, func(c place) bool { return c.saved.Round > rec.Plan.At })
		case rec.Commit != nil:
			last = *rec.Commit
			newest = &place{n: n + 1, offset: r.Offset(), at: rec.At, saved: event.Checkpoint{Hash: last.Hash}}
			commits[last.To] = newest
		case rec.Points != nil && rec.Points.Round <= last.To, rec.Evaluation != nil && rec.Evaluation.Round <= last.To:
			if newest != nil && newest.n == n {
				newest.n++
			}
		case rec.Checkpoint != nil:
			cp := rec.Checkpoint
			c := commits[cp.Round]
			if c != nil && c.saved.Hash == cp.Hash && cp.Epoch == epoch && slices.Contains(files, cp.Round) {
				c.saved = *cp
				places = append(places, *c)
			}
			maps.DeleteFunc(commits, func(to uint64, _ *place) bool { return to <= cp.Round })
		}
	})
	places = slices.DeleteFunc(places, func(c place) bool {
		return c.saved.Round >= last.To || probed && (good.Good == nil || c.saved.Round > good.Good.Round)
	})
	return places, r.Offset(), first, err
}

// eachRecord calls take with the records of a log up to its end, and their numbers.
func eachRecord(ctx context.Context, r *session.Reader, take func(n uint64, rec event.Record)) error {
	for rec, err := range r.Rest() {
		if err != nil {
			return err
		}
		n := r.At() - 1
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		take(n, rec)
	}
	return nil
}

// maxBeginning is the largest view in a beginning, in bytes: a record has 8 MiB at most.
const maxBeginning = 7 << 20

// head returns the records that stand in for those before c in the log in dir: what a reader would conclude from the
// removed records as far as it matters for the rest of the log, and a plan that restores the checkpoint.
func (c *place) head(ctx context.Context, dir string) (out []event.Record, err error) {
	var (
		config    event.Record
		limit     event.Limit
		phase     event.Phase
		plan      event.Plan
		pending   event.Pending
		accepted  *event.Record
		probe     *event.Record  // the first with a finite loss, with which LastGood compares
		extremes  alert.Extremes // with which the alert rules compare
		alerts    []event.Record // the first of each kind that explains a difference to verify
		tests     []event.Record // by round
		before    []event.Edit   // edits of the log
		later     []event.Edit   // edits that stay in the log, although the checkpoint has them
		whole     = view.New()
		firstTime = int64(0)
	)
	r, err := session.OpenReader(dir)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	err = eachRecord(ctx, r, func(n uint64, rec event.Record) {
		if n >= c.n {
			if rec.Edit != nil && !slices.ContainsFunc(before, rec.Edit.Same) {
				later = append(later, *rec.Edit)
			}
			return
		}
		whole.Apply(rec)
		pending.Take(rec)
		extremes.Take(rec)
		switch {
		case rec.Config != nil:
			config, limit, firstTime = rec, rec.Config.Limit, rec.At
		case rec.Plan != nil:
			plan, before = *rec.Plan, append(before, rec.Plan.Timeline...)
			tests = slices.DeleteFunc(tests, func(t event.Record) bool { return t.Evaluation.Round > plan.At })
		case rec.Edit != nil:
			before = append(before, *rec.Edit)
		case rec.Accepted != nil:
			accepted = &rec
		case rec.Evaluation != nil:
			tests = append(tests, rec)
		case probe == nil && finiteProbe(rec.Points):
			probe = &rec
		case rec.Alert != nil && explains(rec.Alert.Kind):
			if !slices.ContainsFunc(alerts, func(a event.Record) bool { return a.Alert.Kind == rec.Alert.Kind }) {
				alerts = append(alerts, rec)
			}
		case rec.State != nil:
			phase = rec.State.Phase
			if rec.State.Limit != nil {
				limit = *rec.State.Limit
			}
		}
	})
	if err != nil {
		return nil, err
	}
	add := func(rec event.Record) {
		rec.At = c.at
		out = append(out, rec)
	}
	out = append(out, config)
	if probe != nil {
		out = append(out, *probe)
	}
	for _, rec := range extremes.Records() {
		if probe == nil || rec.Points != probe.Points {
			out = append(out, rec)
		}
	}
	out = slices.Concat(out, alerts, lastingTests(config.Config, tests, limit.Patience))
	add(event.Record{State: &event.State{Round: c.saved.Round, Phase: phase, Limit: &limit}})
	obeyed := pending.Last
	if len(pending.Commands) > 0 {
		obeyed = pending.Commands[0].N - 1
		for _, a := range pending.Commands {
			add(event.Record{Accepted: &a})
		}
	} else if accepted != nil {
		add(*accepted)
	}
	saved := c.saved
	saved.Timeline = slices.DeleteFunc(slices.Clone(saved.Timeline), func(e event.Edit) bool {
		return slices.ContainsFunc(later, e.Same)
	})
	add(event.Record{Checkpoint: &saved})
	add(event.Record{Plan: &event.Plan{
		Epoch:     saved.Epoch,
		At:        saved.Round,
		From:      event.Saved,
		Old:       saved.Roster,
		New:       saved.Roster,
		OldAlg:    saved.Algorithm,
		Algorithm: saved.Algorithm,
		Timeline:  saved.Timeline,
		Cause:     event.CauseResume,
		Note:      "older records were removed from the log",
		Obeyed:    obeyed,
	}})
	begins := *config.Config
	begins.Begins = &event.Beginning{
		Round: saved.Round,
		First: c.n - uint64(len(out)),
		Head:  uint64(len(out)),
		View:  whole.Beginning(maxBeginning),
	}
	begins.Set, begins.By = nil, "" // of a branch: they are in effect
	out[0] = event.Record{At: firstTime, Config: &begins}
	return out, nil
}

// finiteProbe reports whether points are of a probe of the centre with a finite loss.
func finiteProbe(p *event.Points) bool {
	return p != nil && p.Series == event.SeriesCentre && len(p.Values) > 0 &&
		!math.IsNaN(p.Values[0]) && !math.IsInf(p.Values[0], 0)
}

// explains reports whether verify needs to know an alert of the run, whenever it was.
func explains(k event.AlertKind) bool {
	return k == event.AlertBytes || k == event.AlertMissing || k == event.AlertVaries
}

// lastingTests returns the evaluations of a log, in their order, that its readers need later: the one with the best
// score, the one with the lowest validation loss, as many after that as the patience of the run counts, and the last.
func lastingTests(c *event.Config, tests []event.Record, patience int) (out []event.Record) {
	score := c.Score()
	best, lowest := 0, 0
	for i, t := range tests {
		x, y := score.Of(t.Evaluation), score.Of(tests[best].Evaluation)
		if score.Better(x, y) || x == x && y != y { // NaN is no score
			best = i
		}
		v, w := t.Evaluation.Validation, tests[lowest].Evaluation.Validation
		if v != nil && (w == nil || v.Loss < w.Loss || v.Loss == v.Loss && w.Loss != w.Loss) {
			lowest = i
		}
	}
	for i, t := range tests {
		if i == best || i == lowest || i > lowest && i >= len(tests)-max(patience, 1) {
			out = append(out, t)
		}
	}
	return out
}
