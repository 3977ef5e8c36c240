package coordinator

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/catalog"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/runtime/timeline"
)

// simWorker handles messages as runtime/worker does, on a symbolic state.
type simWorker struct {
	sim    *sim
	id     int
	here   bool // has joined
	dead   bool
	faulty bool // may be evicted
	cuts   int  // broken connections
	epoch  uint32

	inbox  []any
	busy   bool
	job    int          // number of the current job; the end of a cancelled job is ignored
	finish func() error // completes the job, once all peers have begun it
	at     *meeting     // the point where it waits
	peers  []int        // the workers that it waits for
	now    *simEpoch
	next   *simEpoch
}

// simEpoch is an epoch in effect.
type simEpoch struct {
	epoch  uint32
	alg    *optim.Algorithm
	roster collective.Roster
	round  uint64
	time   *timeline.Timeline
	state  symbols
	copies symbols // rows whose mirror it is, in an epoch with witnesses
	snaps  map[uint64]simSnap
	dirty  bool // a round is in progress
	ended  bool
	blown  map[uint64]bool // grants, by their first round, after which a block was not finite
}

type simSnap struct {
	state  symbols
	copies symbols
	edits  int
}

// symbols is the state of some members and of the shared rows.
type symbols struct {
	shared hash
	rows   map[engine.Member]hash
	prog   event.Progress
}

func (y symbols) clone() symbols {
	y.rows = maps.Clone(y.rows)
	return y
}

// symbolic returns an algorithm whose blocks are those of symbols. Their width is a hash of the algorithm's real
// blocks.
func symbolic(name string) (*optim.Algorithm, error) {
	known, err := catalog.Lookup(name)
	if err != nil {
		return nil, err
	}
	alg := *known
	alg.Blocks = func(k optim.Values, l engine.Layout) []optim.Block {
		var h hash
		for _, b := range known.Blocks(k, l) {
			if b.Cols > 0 {
				h = mix(mixText(h, b.Name), uint64(b.Cols), uint64(b.Type))
			}
		}
		cols := 1 + int(uint64(h)%1000)
		return []optim.Block{{Name: "x", Cols: cols}, {Name: "y", Shared: true, Cols: cols}}
	}
	return &alg, nil
}

// digests returns the digests of all rows. There are two shared rows, so that the test covers reports that differ in
// both.
func (y symbols) digests() map[string][32]byte {
	p := mix(0, y.prog.Rounds, y.prog.Steps, y.prog.Samples, math.Float64bits(y.prog.Epochs))
	out := map[string][32]byte{"y/shared": y.shared.digest(), "progress/shared": p.digest()}
	for m, h := range y.rows {
		out[fmt.Sprintf("x/%d", m)] = h.digest()
	}
	return out
}

// published is the state that a survivor publishes for a plan.
type published struct {
	rows   map[engine.Member]hash
	shared hash
	prog   event.Progress
}

const simEpochSamples = 2000 // samples of one epoch of the symbolic data

// advance executes a symbolic round.
func (y *symbols) advance(alg *optim.Algorithm, v optim.Values, members []engine.Member) {
	h := hash(y.prog.Rounds)
	for _, k := range alg.Knobs {
		h = mix(h, math.Float64bits(v.Get(k.Name)))
	}
	for _, m := range members {
		h = mix(h, uint64(m))
	}
	y.shared = mix(y.shared, uint64(h))
	for m, old := range y.rows {
		y.rows[m] = mix(old, uint64(h), uint64(m))
	}
	n, batch := uint64(len(members)), uint64(v.Get("batch"))
	y.prog.Rounds++
	y.prog.Steps += n
	y.prog.Samples += n * batch
	y.prog.Epochs = float64(y.prog.Samples) / simEpochSamples
}

// simLoss returns a falling loss, so that targets can be met.
func simLoss(round uint64) float64 { return 1 / float64(round) }

// arrive adds a message to the inbox. An abort discards all earlier messages.
func (w *simWorker) arrive(msg any) error {
	if w.dead {
		return nil
	}
	if _, ok := msg.(message.Abort); ok {
		w.inbox = w.inbox[:0]
		w.cancel()
	}
	w.inbox = append(w.inbox, msg)
	return w.work()
}

func (w *simWorker) cancel() {
	w.job++
	w.busy, w.at, w.finish = false, nil, nil
}

func (w *simWorker) work() error {
	for !w.busy && !w.dead && len(w.inbox) > 0 {
		msg := w.inbox[0]
		w.inbox = w.inbox[1:]
		if err := w.begin(msg); err != nil {
			return fmt.Errorf("worker %d: %w", w.id, err)
		}
	}
	return nil
}

func (w *simWorker) begin(msg any) error {
	s := w.sim
	switch m := msg.(type) {
	case message.Evict:
		if m.After > 0 { // it returns under another number
			s.spawn(m.After.Milliseconds())
		}
		return s.kill(w.id, "evicted")
	case message.Stop:
		return s.kill(w.id, "evicted")
	case message.Abort:
		w.epoch = max(w.epoch, m.Epoch)
	case message.Plan:
		if m.Epoch < w.epoch {
			return nil
		}
		w.epoch = m.Epoch
		return w.prepare(m)
	case message.Grant:
		if m.Epoch != w.epoch {
			return nil
		}
		w.install(m.Epoch)
		if w.now == nil || w.now.epoch != m.Epoch || w.now.ended || w.now.round != m.From {
			return nil
		}
		return w.grant(m)
	case message.Audit:
		if m.Epoch == w.epoch && w.now != nil && w.now.epoch == m.Epoch {
			w.audit(m)
		}
	case message.Save:
		if m.Epoch != w.epoch {
			return nil
		}
		w.install(m.Epoch)
		return w.save(m)
	}
	return nil
}

func (w *simWorker) install(epoch uint32) {
	if w.next != nil && w.next.epoch == epoch {
		w.now, w.next = w.next, nil
	}
}

// start makes the worker busy. f runs after a delay, once all peers have reached the same point.
func (w *simWorker) start(at meeting, peers []int, f func() error) error {
	s := w.sim
	if s.began[at] == nil {
		s.began[at] = map[int]bool{}
	}
	s.began[at][w.id] = true
	w.busy = true
	w.job++
	job := w.job
	s.at(s.scene.work(&s.draw), func() error {
		if w.job != job || w.dead {
			return nil
		}
		w.at, w.peers, w.finish = &at, peers, f
		return w.meet()
	})
	if s.scene.strike(&s.draw) {
		s.at(int64(s.draw.n(6)), func() error { return s.kill(w.id, "struck at work") })
	}
	s.drawCut(w.id, peers)
	for _, p := range peers { // that may wait for this one
		if err := s.workers[p].meet(); err != nil {
			return err
		}
	}
	return nil
}

// meet completes the job once all peers have begun it.
func (w *simWorker) meet() error {
	if w.at == nil {
		return nil
	}
	for _, p := range w.peers {
		if !w.sim.began[*w.at][p] {
			return nil
		}
	}
	f := w.finish
	w.cancel()
	if err := f(); err != nil {
		return fmt.Errorf("worker %d: %w", w.id, err)
	}
	return w.work()
}

func (w *simWorker) prepare(p message.Plan) error {
	if w.next != nil && w.next.epoch == p.Base {
		w.install(p.Base)
	}
	w.next = nil
	var peers []int
	if p.From == event.Workers {
		survivors := p.Sources().Workers()
		if slices.Contains(survivors, w.id) {
			if err := w.present(p); err != nil {
				return err
			}
		}
		peers = append(survivors, p.New.Workers()...)
		slices.Sort(peers)
		peers = slices.Compact(peers)
		if !slices.Contains(peers, w.id) {
			peers = nil
		}
	}
	return w.start(meeting{epoch: p.Epoch, plan: true}, peers, func() error { return w.ready(p) })
}

// present restores the plan's round and publishes the surviving rows.
func (w *simWorker) present(p message.Plan) error {
	if w.now == nil || w.now.epoch != p.Base {
		return fmt.Errorf("it is a survivor of epoch %d but has the state %v", p.Base, w.now)
	}
	if err := w.now.restore(p.At); err != nil {
		return err
	}
	pub := &published{rows: map[engine.Member]hash{}, shared: w.now.state.shared, prog: w.now.state.prog}
	for _, m := range p.Sources().Hosted(w.id) {
		h, ok := w.now.state.rows[m]
		if slices.Contains(p.Mirrored, m) {
			h, ok = w.sim.mirrored(p, m)
		}
		if !ok {
			return fmt.Errorf("it should host member %d in epoch %d", m, p.Epoch)
		}
		pub.rows[m] = h
	}
	if w.sim.posts[p.Epoch] == nil {
		w.sim.posts[p.Epoch] = map[int]*published{}
	}
	w.sim.posts[p.Epoch][w.id] = pub
	return nil
}

// mirrored returns the row of a member whose worker is gone. Its mirror has had the row since the round was committed,
// or the plan was ready, which its worker took part in.
func (s *sim) mirrored(p message.Plan, m engine.Member) (h hash, ok bool) {
	return s.copied(p.Old.Of(m), message.Committed{Epoch: p.Base, Round: p.At}, m)
}

// copied returns the row of a member in a committed state from the memory of its worker, even if that is gone.
func (s *sim) copied(worker int, at message.Committed, m engine.Member) (h hash, ok bool) {
	gone := s.workers[worker]
	e := gone.now
	if e == nil || e.epoch != at.Epoch {
		e = gone.next
	}
	if e == nil || e.epoch != at.Epoch {
		return h, false
	}
	rows := e.state.rows
	if snap, ok := e.snaps[at.Round]; ok {
		rows = snap.state.rows
	} else if e.round != at.Round || e.dirty {
		return h, false
	}
	h, ok = rows[m]
	return h, ok
}

// returnTo lets a worker that lived on join the new coordinator with what it holds.
func (s *sim) returnTo(w *simWorker, at message.Committed) {
	w.here, w.inbox = false, nil
	w.cancel()
	s.at(int64(s.survive.n(40)), func() error {
		if w.dead {
			return nil
		}
		w.here = true
		h := w.held(at)
		if h == nil { // the process makes a new worker
			w.now, w.next, w.epoch = nil, nil, 0
		}
		return s.step(Joined{Worker: w.id, Machine: machineOf(w.id), Held: h})
	})
}

// machineOf returns the machine of a worker: one in three shares none.
func machineOf(worker int) string { return []string{"", "a", "b"}[worker%3] }

// held returns what the worker holds of a committed state, as worker.Held does.
func (w *simWorker) held(at message.Committed) *message.Held {
	w.install(at.Epoch)
	if w.now == nil || w.now.epoch != at.Epoch || w.now.restore(at.Round) != nil {
		return nil
	}
	w.next, w.epoch = nil, at.Epoch
	h := &message.Held{Committed: at, Digests: message.DigestsOf(w.now.state.digests())}
	if w.sim.cfg.OnLoss == OnLossMirror {
		rows := map[string][32]byte{}
		for _, m := range w.now.roster.Mirrors().Hosted(w.id) {
			if x, ok := w.sim.copied(w.now.roster.Of(m), at, m); ok {
				rows[fmt.Sprintf("x/%d", m)] = x.digest()
			}
		}
		h.Mirrored = message.DigestsOf(rows)
	}
	return h
}

func (e *simEpoch) restore(at uint64) error {
	snap, ok := e.snaps[at]
	if !ok {
		if e.round == at && !e.dirty {
			return nil
		}
		return fmt.Errorf("no snapshot of round %d (at %d)", at, e.round)
	}
	e.state, e.copies, e.round, e.ended, e.dirty = snap.state.clone(), snap.copies.clone(), at, false, false
	return e.time.Truncate(snap.edits)
}

// ready builds the blocks of the plan.
func (w *simWorker) ready(p message.Plan) error {
	s := w.sim
	if s.scene.failPlan(&s.draw) {
		w.faulty = true
		s.reply(w.id, message.Failed{Worker: w.id, Epoch: p.Epoch, Err: "the plan failed"})
		return nil
	}
	alg, err := s.cfg.Lookup(p.Algorithm)
	if err != nil {
		return err
	}
	tl, err := timeline.New(alg, p.Timeline)
	if err != nil {
		return err
	}
	next := &simEpoch{
		epoch:  p.Epoch,
		alg:    alg,
		roster: p.New,
		round:  p.At,
		time:   tl,
		snaps:  map[uint64]simSnap{},
		blown:  map[uint64]bool{},
	}
	if next.state, err = w.build(p, w.id); err != nil {
		return err
	}
	if p.Witness && p.Mirror {
		for _, owner := range p.New.Workers() {
			if mirrors := p.New.Mirrors(); len(mirrors.Members) > 0 && mirrors.Of(p.New.Hosted(owner)[0]) == w.id {
				if next.copies, err = w.build(p, owner); err != nil {
					return err
				}
			}
		}
	}
	w.next = next
	r := measured(w.id, p, tl.Values(timeline.Position{Round: p.At}), alg)
	m := message.Ready{Worker: w.id, Epoch: p.Epoch, Noise: r.Noise, Bytes: r.Bytes}
	if p.Witness {
		at := message.Committed{Epoch: p.Epoch, Round: p.At}
		m.Held = &message.Held{Committed: at, Digests: message.DigestsOf(next.state.digests()), Mirrored: next.copies.own()}
	}
	s.reply(w.id, m)
	return nil
}

// own returns the digests of the rows of members.
func (y symbols) own() message.Digests {
	return slices.DeleteFunc(message.DigestsOf(y.digests()), func(x message.Digest) bool {
		_, member := rowMember(x)
		return !member
	})
}

// build returns the blocks of the plan that a worker hosts.
func (w *simWorker) build(p message.Plan, host int) (y symbols, err error) {
	s := w.sim
	switch p.From {
	case event.Fresh:
		y = freshSymbols(p.Algorithm, p.New.Hosted(host))
	case event.Saved:
		return s.load(p, host)
	default:
		all := symbols{rows: map[engine.Member]hash{}}
		for _, id := range p.Sources().Workers() {
			pub := s.posts[p.Epoch][id]
			if pub == nil {
				if len(p.New.Hosted(host)) > 0 {
					return y, fmt.Errorf("survivor %d of epoch %d published nothing", id, p.Epoch)
				}
				break // it does not take part
			}
			all.shared, all.prog = pub.shared, pub.prog
			maps.Copy(all.rows, pub.rows)
		}
		y = carry(all, s.naive.blocks(p.OldAlg, p.Timeline, p.At), s.naive.blocks(p.Algorithm, p.Timeline, p.At),
			p.New.Hosted(host))
	}
	return y, nil
}

// audit reports what another worker should have reported of a grant.
func (w *simWorker) audit(m message.Audit) {
	s := w.sim
	for _, a := range m.Pairs {
		of := s.workers[a.Of].now
		if a.By != w.id || of == nil || of.epoch != m.Epoch {
			continue
		}
		to := m.From + 1
		for ; of.snaps[to].state.rows == nil && to < of.round; to++ {
		}
		end, ok := of.snaps[to]
		if !ok {
			end.state = of.state
		}
		s.reply(w.id, message.Audited{Worker: w.id, Epoch: m.Epoch, From: m.From, Of: a.Of,
			Start:     message.DigestsOf(of.snaps[m.From].state.digests()),
			Digests:   message.DigestsOf(end.state.digests()),
			NonFinite: of.blown[m.From],
			To:        end.state.prog.Rounds,
			Ended:     of.ended && of.round == end.state.prog.Rounds,
			Progress:  end.state.prog})
	}
}

func freshSymbols(alg string, members []engine.Member) symbols {
	y := symbols{shared: mixText(1, alg), rows: map[engine.Member]hash{}}
	for _, m := range members {
		y.rows[m] = mix(mixText(2, alg), uint64(m))
	}
	return y
}

// carry returns the state after a plan: survivors keep their rows, new members start from the centre, and a change of
// the blocks changes every row.
func carry(old symbols, was, will hash, members []engine.Member) symbols {
	centre := old.shared
	for _, m := range slices.Sorted(maps.Keys(old.rows)) {
		centre = mix(centre, uint64(m), uint64(old.rows[m]))
	}
	y := symbols{shared: old.shared, rows: map[engine.Member]hash{}, prog: old.prog}
	if was != will {
		y.shared = mix(y.shared, uint64(will))
	}
	for _, m := range members {
		h, ok := old.rows[m]
		if !ok {
			h = mix(centre, 77)
		}
		if was != will {
			h = mix(h, uint64(will))
		}
		y.rows[m] = h
	}
	return y
}

func (w *simWorker) grant(g message.Grant) error {
	s, e := w.sim, w.now
	for at := range e.snaps {
		if at < g.Committed {
			delete(e.snaps, at)
		}
	}
	if !g.Onward {
		e.snaps[e.round] = simSnap{e.state.clone(), e.copies.clone(), e.time.Len()}
	}
	for _, ed := range g.Edits {
		if err := e.time.Add(ed); err != nil {
			return err
		}
	}
	clean := e.state
	e.state, e.dirty = symbols{rows: map[engine.Member]hash{}}, true // invalid until the round is complete
	var peers []int
	if s.scene.coupled {
		peers = e.roster.Workers()
	}
	return w.start(meeting{epoch: g.Epoch, from: g.From}, peers, func() error {
		e.state = clean
		return w.done(g)
	})
}

func (w *simWorker) done(g message.Grant) error {
	s, e := w.sim, w.now
	lead := e.roster.Owner[0] == w.id
	d := message.Done{
		Worker: w.id,
		Epoch:  g.Epoch,
		From:   g.From,
		Nanos:  int64(1 + s.draw.n(50)),
		Extra:  int64(s.draw.n(3)),
	}
	for e.round < g.To {
		before := e.state.prog
		pos := timeline.Position{Round: e.round, Epochs: before.Epochs, Steps: before.Steps}
		e.time.Reach(pos)
		e.state.advance(e.alg, e.time.Values(pos), e.roster.Members)
		if e.copies.rows != nil {
			e.copies.advance(e.alg, e.time.Values(pos), e.roster.Members)
		}
		e.round++
		p := e.state.prog
		e.ended = g.Limit.Rounds > 0 && p.Rounds >= g.Limit.Rounds || g.Limit.Epochs > 0 && p.Epochs >= g.Limit.Epochs
		probe := e.round%s.scene.probe == 0 || e.ended
		if probe && lead {
			d.Points = append(d.Points, event.Points{
				Round:   e.round,
				Series:  event.SeriesCentre,
				Members: []engine.Member{engine.None},
				Values:  []float64{simLoss(e.round)},
			})
		}
		if e.ended || probe && g.Hold {
			break
		}
	}
	if s.scene.nonFinite(&s.draw) && len(e.roster.Hosted(w.id)) > 0 {
		e.blown[g.From] = true
		s.reply(w.id, message.Failed{Worker: w.id, Epoch: g.Epoch, Err: "not finite",
			NonFinite: &message.NonFinite{Block: "x", Member: e.roster.Hosted(w.id)[0], From: g.From, To: e.round}})
		return nil
	}
	e.dirty = false
	d.To, d.Ended, d.Progress, d.Digests = e.round, e.ended, e.state.prog, message.DigestsOf(e.state.digests())
	if e.copies.rows != nil {
		d.Mirrored = e.copies.own()
	}
	if (s.drifter < 0 || s.drifter == w.id || s.workers[s.drifter].dead) && e.roster.Owner[0] != w.id &&
		s.scene.drift(&s.draw) {
		w.faulty, s.drifter = true, w.id // one worker at a time
		setDigest(&d, "y/shared", [32]byte{1, byte(w.id)})
		setDigest(&d, "progress/shared", [32]byte{2, byte(w.id)})
	}
	s.reply(w.id, d)
	return nil
}

func (w *simWorker) save(m message.Save) error {
	s, e := w.sim, w.now
	out := message.Saved{Worker: w.id, Epoch: m.Epoch, At: m.At}
	if s.scene.strike(&s.draw) {
		return s.kill(w.id, "struck while saving")
	}
	if s.scene.failSave(&s.draw) {
		out.Err = "the disk is full"
		s.reply(w.id, out)
		return nil
	}
	if e == nil {
		return fmt.Errorf("it has no blocks to save")
	}
	y, ok := e.state, true
	if snap, has := e.snaps[m.At]; has {
		y = snap.state
	} else if ok = e.round == m.At && !e.dirty; !ok {
		return fmt.Errorf("no snapshot of round %d to save (at %d)", m.At, e.round)
	}
	path := fmt.Sprintf("%d/%d/%d", m.Epoch, m.At, w.id)
	s.store[path] = y.file(s.naive.kept)
	out.Files = []event.File{{Path: path, Digest: fileDigest(s.store[path])}}
	s.reply(w.id, out)
	return nil
}

// file returns the checkpoint file with these rows.
func (y symbols) file(kept hash) map[string]hash {
	file := map[string]hash{"kept": kept, "shared": y.shared, "rounds": hash(y.prog.Rounds), "steps": hash(y.prog.Steps),
		"samples": hash(y.prog.Samples)}
	for id, h := range y.rows {
		file[fmt.Sprint(id)] = h
	}
	return file
}

// fileDigest returns the digest of a file. A checkpoint whose file was overwritten no longer matches it.
func fileDigest(file map[string]hash) string {
	var h hash
	for _, name := range slices.Sorted(maps.Keys(file)) {
		h = mix(mixText(h, name), uint64(file[name]))
	}
	return fmt.Sprintf("%x", uint64(h))
}

// load reads a checkpoint from its files alone.
func (s *sim) load(p message.Plan, id int) (symbols, error) {
	cp := p.Checkpoint
	if cp == nil || cp.Round != p.At || cp.Algorithm != p.Algorithm || !slices.Equal(cp.Roster.Members, p.New.Members) {
		return symbols{}, fmt.Errorf("the plan of epoch %d restores %+v, which is another state", p.Epoch, cp)
	}
	y := symbols{rows: map[engine.Member]hash{}}
	for _, f := range cp.Files {
		file := s.store[f.Path]
		if fileDigest(file) != f.Digest {
			return y, fmt.Errorf("%s of the checkpoint of round %d was overwritten", f.Path, cp.Round)
		}
		if file["kept"] != s.naive.blocks(p.Algorithm, p.Timeline, p.At) {
			return y, fmt.Errorf("the checkpoint of round %d has other blocks than the knobs of the plan need", cp.Round)
		}
		y.shared, y.prog = file["shared"],
			event.Progress{Rounds: uint64(file["rounds"]), Steps: uint64(file["steps"]), Samples: uint64(file["samples"])}
		y.prog.Epochs = float64(y.prog.Samples) / simEpochSamples
		for _, m := range p.New.Hosted(id) {
			if h, ok := file[fmt.Sprint(m)]; ok {
				y.rows[m] = h
			}
		}
	}
	if len(y.rows) != len(p.New.Hosted(id)) {
		return y, fmt.Errorf("the checkpoint of round %d lacks rows of %v", cp.Round, p.New.Hosted(id))
	}
	return y, nil
}
