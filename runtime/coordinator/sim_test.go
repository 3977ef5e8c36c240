package coordinator

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"brood/models/longtest"
	"brood/runtime/event"
	"brood/runtime/message"
)

// The simulator drives the core through whole runs in virtual time. The state of a worker's member is a hash chain over
// rounds, knob values and members, so that any mistake in who executes what with which knobs changes a hash, and a run
// takes a fraction of a millisecond. Every decision (delays, deaths, commands) is drawn from the seed.

// sim is one simulated run.
type sim struct {
	draw  dice
	scene scene
	cfg   Config
	core  *Coordinator
	check *checker
	naive *naive

	now     int64 // virtual milliseconds
	queue   happenings
	serial  uint64
	last    map[[2]int]int64 // newest arrival on a channel, by worker and direction
	workers []*simWorker     // by id, including dead ones
	store   map[string]map[string]hash
	posts   map[uint32]map[int]*published // rows that survivors publish, by epoch
	began   map[meeting]map[int]bool      // workers that have reached a collective
	exit    *Exit
	nextID  uint64
	waiting bool // a resume command is queued
	drifter int  // worker that reports other digests than its own, -1: none yet
	odds    dice // for connections that break
	nevers  dice // for connections that never existed
	severs  int  // number of breaks left

	survive    *dice            // workers live on when the coordinator crashes; nil: they die too
	recomputed event.Checkpoint // what a recomputation of the last commit gives

	trace   hash
	verbose bool
	lines   []string
}

// meeting identifies a point that workers pass together: a grant or a plan.
type meeting struct {
	epoch uint32
	from  uint64
	plan  bool
}

func newSim(seed uint64, verbose bool) (*sim, error) {
	s := &sim{draw: dice{seed}, last: map[[2]int]int64{}, store: map[string]map[string]hash{}, verbose: verbose,
		posts: map[uint32]map[int]*published{}, began: map[meeting]map[int]bool{}, nextID: 1, drifter: -1}
	s.scene = drawScene(&s.draw)
	s.cfg = s.scene.cfg
	drawAuto(s, seed)
	odds := dice{seed ^ 0x70b1}
	s.cfg.OnTrouble = []TroublePolicy{"", OnTroubleWait, OnTroubleStop, OnTroubleBack}[odds.n(4)]
	if seed%5 == 2 { // not drawn, so that the other decisions of all seeds stay
		s.cfg.OnLoss = OnLossMirror
	}
	if seed%5 == 3 {
		s.survive = &dice{seed ^ 0x11fe}
	}
	if seed%7 == 4 {
		s.cfg.Audit, s.cfg.Secret = 0.5, seed
	}
	if seed%3 == 1 {
		s.cfg.MinWorkers = min(2, s.scene.workers)
	}
	if odds := (dice{seed ^ 0x5a9}); odds.one(2) { // a single worker keeps no snapshots
		s.cfg.Keep = 1
	}
	var err error
	if s.core, err = New(s.cfg); err != nil {
		return nil, err
	}
	s.check, s.naive = newChecker(s), newNaive(s.cfg)
	for range s.scene.workers {
		s.spawn(int64(s.draw.n(20)))
	}
	for _, k := range s.scene.kills {
		s.at(k.when, func() error { return s.kill(k.worker, "killed") })
	}
	for _, j := range s.scene.joins {
		s.at(j, func() error { s.spawn(0); return nil })
	}
	for _, at := range s.scene.commands {
		s.at(at, func() error { return s.command(drawCommand(s)) })
	}
	if odds := (dice{seed ^ 0xc4a5}); odds.one(3) { // own dice: the other decisions of the seed do not change
		s.at(int64(20+odds.n(380)), s.crash)
	}
	drawLeaves(s, seed)
	drawCuts(s, seed)
	if s.scene.interrupt > 0 {
		s.at(s.scene.interrupt, func() error { s.check.stopped = true; return s.step(Interrupt{}) })
	}
	return s, nil
}

// run simulates to the exit. It returns an error if an invariant is violated.
func (s *sim) run() error {
	for n := 0; s.exit == nil; n++ {
		if n > 20000 {
			return fmt.Errorf("no end after %d events", n)
		}
		h, ok := s.queue.pop()
		if !ok {
			if err := s.nudge(); err != nil {
				return err
			}
			continue
		}
		s.now = h.at
		if err := h.do(); err != nil {
			return err
		}
		if s.exit != nil && s.exit.Phase == event.Stopped {
			if err := s.resumeStopped(); err != nil {
				return err
			}
		}
	}
	return s.check.end()
}

// resumeStopped sometimes resumes a run that was stopped: a new core and new workers use the log of the old ones.
func (s *sim) resumeStopped() error {
	cp := s.check.newest
	if s.check.count["resumed"] > 0 || cp == nil || cp.Round != s.check.at || cp.Epoch != s.check.epoch || s.draw.one(3) {
		return nil
	}
	if err := s.check.end(); err != nil {
		return err
	}
	return s.restart(cp)
}

// crash kills the coordinator, and all workers unless survive is set. It resumes from the log alone: the state after
// the last commit is recomputed and saved, or workers still hold it.
func (s *sim) crash() error {
	c := s.check
	if s.exit != nil || c.count["resumed"] > 0 || c.at == 0 {
		return nil
	}
	path := fmt.Sprintf("crash/%d", c.at)
	s.store[path] = s.naive.state.file(s.naive.kept)
	cp := event.Checkpoint{
		Round:     c.at,
		Epoch:     c.epoch,
		Roster:    c.roster,
		Algorithm: c.alg,
		Hash:      c.hashes[c.at],
		Progress:  s.naive.state.prog,
		Files:     []event.File{{Path: path, Digest: fileDigest(s.store[path])}},
	}
	for _, e := range c.effective {
		if e.At < c.at || slices.ContainsFunc(s.naive.planned, e.Same) {
			if at, passed := s.naive.where[e.At]; passed && e.At <= c.at {
				e.Epochs, e.Steps = at.Epochs, at.Steps
			}
			cp.Timeline = append(cp.Timeline, e)
		}
	}
	c.count["crashed"]++
	s.note("crash at round %d, pending %v", c.at, c.pending.Commands)
	s.recomputed = cp
	if s.survive != nil && c.logged.At < c.at {
		cp.Files = nil
		cp.Roster = c.roster
		s.cfg.Reattach = &Reattach{Plan: c.logged, Saved: c.lastGood.Newest(), Patience: 100 * time.Millisecond}
	}
	return s.restart(&cp)
}

// restart starts a new core and new workers from the log.
func (s *sim) restart(cp *event.Checkpoint) error {
	s.queue, s.exit, s.waiting = nil, nil, false
	var survivors []*simWorker
	for _, w := range s.workers {
		if s.cfg.Reattach != nil && w.here && !w.dead && !s.survive.one(8) {
			survivors = append(survivors, w)
			continue
		}
		w.dead, w.here = true, false
	}
	s.cfg.Resume, s.cfg.Epoch, s.cfg.Late, s.cfg.Asked, s.cfg.Cause = cp, s.check.epoch, nil, s.check.pending, "resume"
	s.cfg.LastGood = s.check.lastGood
	s.cfg.Limit = event.Limit{Rounds: max(1, cp.Round+uint64(s.draw.n(12)))}
	for _, e := range s.check.effective {
		if e.At >= cp.Round && !slices.ContainsFunc(cp.Timeline, e.Same) {
			s.cfg.Late = append(s.cfg.Late, e)
		}
	}
	var err error
	if s.core, err = New(s.cfg); err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	if err := s.check.resumed(cp); err != nil {
		return err
	}
	s.note("resumed from round %d, late %s", cp.Round, edits(s.cfg.Late))
	if s.cfg.Reattach != nil {
		s.posts, s.began = map[uint32]map[int]*published{}, map[meeting]map[int]bool{}
		for _, w := range survivors {
			s.returnTo(w, message.Committed{Epoch: cp.Epoch, Round: cp.Round})
		}
	}
	for range s.cfg.Wait - len(survivors) {
		s.spawn(int64(s.draw.n(20)))
	}
	for range s.draw.n(4) {
		s.at(int64(s.draw.n(100)), func() error { return s.command(drawCommand(s)) })
	}
	return nil
}

// nudge is called when nothing is queued. The run must be waiting for a person, for a worker, or for time.
func (s *sim) nudge() error {
	switch {
	case s.core.reattach.waiting:
		s.at(50, func() error { return s.step(Tick{}) })
	case len(s.core.alive) < s.cfg.Wait && s.core.base == s.cfg.Epoch, len(s.core.alive) == 0, s.core.short():
		if s.check.stopped && len(s.core.alive) == 0 {
			return fmt.Errorf("the run was asked to stop without workers, but waits for one")
		}
		s.spawn(1)
	case !s.core.retry.IsZero():
		s.at(50, func() error { return s.step(Tick{}) })
	case s.core.phase == event.Paused && s.core.ending == nil:
		return s.command(event.Command{Action: event.Resume})
	case s.cfg.Limit.Seconds > 0 && s.now < 1e6:
		s.at(50, func() error { return s.step(Tick{}) })
	default:
		return fmt.Errorf("stuck: phase %s, committed %d, granted %d, plan %v, change %v, ending %v, saving %v, alive %v",
			s.core.phase, s.core.committed, s.core.granted, s.core.plan != nil, s.core.change != nil, s.core.ending,
			s.core.saving != nil, s.core.alive)
	}
	return nil
}

// step feeds an event to the core and carries out the effects, as a shell would.
func (s *sim) step(ev any) error {
	s.mark(ev)
	s.check.before(ev)
	fx := s.core.Step(time.UnixMilli(s.now), eventOf(ev))
	for _, x := range fx {
		s.mark(x)
		if err := s.check.effect(x); err != nil {
			return fmt.Errorf("effect %s: %w", describe(x), err)
		}
		switch x := x.(type) {
		case Append:
			if err := s.naive.record(x.Record); err != nil {
				return fmt.Errorf("%s: %w", describe(x), err)
			}
			if st := x.Record.State; st != nil && st.Phase == event.Paused && !s.waiting {
				s.waiting = true
				s.at(int64(5+s.draw.n(60)), s.resume)
			}
		case Send:
			s.post(x.Worker, x.Msg)
		case Release:
			if err := s.release(x.Worker); err != nil {
				return err
			}
		case Recompute:
			s.check.count["recomputed"]++
			s.at(int64(s.survive.n(50)), func() error { return s.step(Recomputed{Checkpoint: s.recomputed}) })
		case Exit:
			s.exit = &x
		}
	}
	return s.check.after(fx)
}

// resume resumes a paused run, as a person would.
func (s *sim) resume() error {
	s.waiting = false
	c := event.Command{Action: event.Resume}
	if s.draw.n(2) == 0 {
		c.Set = []event.Setting{{Knob: "eta", Expr: "0.01"}}
	}
	return s.command(c)
}

func (s *sim) command(c event.Command) error {
	if s.exit != nil {
		return nil
	}
	c.ID = s.nextID
	s.nextID++
	return s.step(c)
}

// post sends a message to a worker, in order, after a drawn delay.
func (s *sim) post(id int, msg any) {
	w := s.workers[id]
	s.channel(id, 0, func() error { return w.arrive(msg) })
}

// reply sends a message to the core.
func (s *sim) reply(id int, msg any) { s.channel(id, 1, func() error { return s.step(msg) }) }

func (s *sim) channel(id, dir int, f func() error) {
	k := [2]int{id, dir}
	at := max(s.last[k], s.now+s.scene.delay(&s.draw))
	s.last[k] = at
	s.at(at-s.now, f)
}

func (s *sim) at(in int64, f func() error) {
	s.serial++
	s.queue.push(happening{s.now + in, s.serial, f})
}

func (s *sim) spawn(in int64) {
	w := &simWorker{sim: s, id: len(s.workers)}
	s.workers = append(s.workers, w)
	s.at(in, func() error {
		if w.dead {
			return nil
		}
		w.here = true
		return s.step(Joined{Worker: w.id, Machine: machineOf(w.id)})
	})
}

// kill ends a worker at once. Messages it has sent still arrive, and then the core learns of its death.
func (s *sim) kill(id int, why string) error {
	if id >= len(s.workers) || s.workers[id].dead {
		return nil
	}
	w := s.workers[id]
	w.dead = true
	w.cancel()
	s.note("worker %d dies: %s", id, why)
	if w.here {
		s.reply(id, Lost{id, why})
	}
	if s.draw.n(2) == 0 {
		s.spawn(int64(s.draw.n(80)))
	}
	return nil
}

// mark adds an event or effect to the hash of the trace.
func (s *sim) mark(x any) {
	s.trace = mix(s.trace, uint64(s.now))
	s.trace = fold(s.trace, x)
	if s.verbose {
		s.note("%s", describe(x))
	}
}

func (s *sim) note(format string, a ...any) {
	if s.verbose {
		s.lines = append(s.lines, fmt.Sprintf("%6d  ", s.now)+fmt.Sprintf(format, a...))
	}
}

// explain runs a seed again and returns the end of its trace.
func explain(seed uint64) string {
	s, err := newSim(seed, true)
	if err != nil {
		return err.Error()
	}
	err = s.run()
	lines := s.lines[max(0, len(s.lines)-400):]
	return fmt.Sprintf("%s\n%s\n=> %v", s.scene, strings.Join(lines, "\n"), err)
}

func envUint(t *testing.T, name string, def uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return def
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestSimulator checks every invariant at every step of drawn runs: 1500 runs, 1000 with -short, 10,000 with
// BROOD_LONG=fleets. BROOD_SIM_SEED=n runs one seed and prints its trace on failure; BROOD_SIM_RUNS=n sets the number
// of runs.
func TestSimulator(t *testing.T) {
	runs := uint64(1500)
	switch {
	case testing.Short():
		runs = 1000
	case longtest.On(longtest.Fleets):
		runs = 10000
	}
	runs = envUint(t, "BROOD_SIM_RUNS", runs)
	from := envUint(t, "BROOD_SIM_SEED", 0)
	if from > 0 {
		runs = 1
	} else {
		from = 1
	}
	const lanes = 4
	began := time.Now()
	stats := make([]tally, lanes)
	t.Run("seeds", func(t *testing.T) {
		for lane := range uint64(lanes) {
			t.Run(fmt.Sprint(lane), func(t *testing.T) {
				t.Parallel()
				failed := 0
				for seed := from + lane; seed < from+runs && failed < 3; seed += lanes {
					s, err := newSim(seed, false)
					if err != nil {
						t.Fatalf("seed %d: %v", seed, err)
					}
					if err := s.run(); err != nil {
						failed++
						t.Errorf("seed %d: %v\n%s", seed, err, explain(seed))
					}
					stats[lane].add(s)
				}
			})
		}
	})
	var all tally
	for _, s := range stats {
		all.sum(s)
	}
	t.Logf("%d runs in %s: %+v", runs, time.Since(began).Round(time.Millisecond), all)
	if runs >= 1000 && slices.Contains(all.values(), 0) {
		t.Errorf("some situation never occurred: %+v", all)
	}
}

// TestSimulatorRepeats: two runs with the same seed have the same trace of events and effects.
func TestSimulatorRepeats(t *testing.T) {
	for seed := uint64(1); seed <= 100; seed++ {
		var got [2]hash
		for i := range got {
			s, err := newSim(seed, false)
			if err != nil {
				t.Fatal(err)
			}
			_ = s.run()
			got[i] = s.trace
		}
		if got[0] != got[1] {
			t.Fatalf("seed %d: the traces differ", seed)
		}
	}
}

// tally counts the situations in all runs, so that the test fails if one never occurs.
type tally struct {
	Plans, Deaths, Rollbacks, Restores, Swaps, Resizes, Structural, Edits, Refused, Saves, FailedSaves, Aborted, Finished,
	Stopped, Resumed, Crashed, Outdated int
	Left, Abandoned, Drained, Uncordoned, Seeds, Chromosomes, Disagreed, Evicted, Failed, Back, Severed, Astray, Never,
	Believed, Mirrored, Reattached, Recomputed, Audited int
}

func (t *tally) add(s *sim) {
	c := s.check
	t.sum(tally{c.count["plan"], c.count["death"], c.count["rollback"], c.count["restore"], c.count["swap"],
		c.count["resize"], c.count["knob"],
		c.count["edit"], c.count["refused"], c.count["checkpoint"], c.count["disk"], c.count["aborted"], c.count["finished"],
		c.count["stopped"], c.count["resumed"], c.count["crashed"], c.count["outdated"],
		c.count["released"], c.count["abandoned"], c.count["drain"], c.count["uncordon"], c.count["chose seed"],
		c.count["chose chromosome"], c.count[string(event.AlertDisagree)], c.count["evicted"], c.count["failed"],
		c.count["back"], c.count[string(event.AlertLostLink)], c.count["astray"], c.count["never"],
		c.count["reported by another"], c.count["mirrored"], c.count["reattached"], c.count["recomputed"],
		c.count["audited"]})
}

func (t *tally) sum(o tally) {
	t.Plans, t.Deaths, t.Rollbacks, t.Restores = t.Plans+o.Plans, t.Deaths+o.Deaths, t.Rollbacks+o.Rollbacks,
		t.Restores+o.Restores
	t.Swaps, t.Resizes, t.Structural, t.Edits = t.Swaps+o.Swaps, t.Resizes+o.Resizes, t.Structural+o.Structural,
		t.Edits+o.Edits
	t.Refused, t.Saves, t.FailedSaves, t.Aborted = t.Refused+o.Refused, t.Saves+o.Saves, t.FailedSaves+o.FailedSaves,
		t.Aborted+o.Aborted
	t.Left, t.Abandoned, t.Drained, t.Uncordoned = t.Left+o.Left, t.Abandoned+o.Abandoned, t.Drained+o.Drained,
		t.Uncordoned+o.Uncordoned
	t.Seeds, t.Chromosomes = t.Seeds+o.Seeds, t.Chromosomes+o.Chromosomes
	t.Disagreed, t.Evicted = t.Disagreed+o.Disagreed, t.Evicted+o.Evicted
	t.Severed, t.Astray, t.Never, t.Believed = t.Severed+o.Severed, t.Astray+o.Astray, t.Never+o.Never,
		t.Believed+o.Believed
	t.Failed, t.Back, t.Mirrored = t.Failed+o.Failed, t.Back+o.Back, t.Mirrored+o.Mirrored
	t.Reattached, t.Recomputed, t.Audited = t.Reattached+o.Reattached, t.Recomputed+o.Recomputed, t.Audited+o.Audited
	t.Finished, t.Stopped, t.Resumed, t.Crashed, t.Outdated = t.Finished+o.Finished, t.Stopped+o.Stopped,
		t.Resumed+o.Resumed, t.Crashed+o.Crashed, t.Outdated+o.Outdated
}

func (t tally) values() []int {
	return []int{t.Plans, t.Deaths, t.Rollbacks, t.Restores, t.Swaps, t.Resizes, t.Structural, t.Edits, t.Refused, t.Saves,
		t.FailedSaves, t.Aborted, t.Finished, t.Stopped, t.Resumed, t.Crashed, t.Outdated,
		t.Left, t.Abandoned, t.Drained, t.Uncordoned, t.Seeds, t.Chromosomes, t.Disagreed, t.Evicted, t.Failed, t.Back,
		t.Severed, t.Astray, t.Never, t.Believed, t.Reattached, t.Recomputed, t.Audited}
}
