package view

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/fxamacker/cbor/v2"

	"brood/models/engine"
	"brood/runtime/event"
	"brood/runtime/timeline"
)

// Apply updates the view with the next record. The view references the record, which must not change afterwards.
func (v *View) Apply(r event.Record) {
	if v.Within > 0 {
		v.Within--
		v.Position++
		return
	}
	if v.First == 0 {
		v.First = r.At
	}
	// no process trained before the run was resumed: the one before was killed
	if resumed := r.State != nil && r.State.Reason == event.Resumed; v.Running() && r.At > v.Last && !resumed {
		v.Trained += r.At - v.Last
	}
	v.Last = max(v.Last, r.At)
	switch {
	case r.Config != nil:
		v.begin(r.Config)
	case r.Plan != nil:
		v.plan(r.Plan)
	case r.Edit != nil:
		v.edit(*r.Edit, r.At)
	case r.Commit != nil:
		v.commit(r.Commit)
	case r.Points != nil:
		v.points(r.Points)
	case r.Evaluation != nil:
		v.evaluation(r.Evaluation)
	case r.Alert != nil:
		v.alert(r.Alert)
	case r.Checkpoint != nil:
		v.Checkpoint, v.Tally.SavedAt = r.Checkpoint, r.At
		v.note(event.LevelInfo, KindCheckpoint, r.Checkpoint.Round, "checkpoint saved")
		v.saved(r.Checkpoint)
	case r.State != nil:
		v.state(r.State)
	case r.Machines != nil:
		v.machines(r.Machines)
	}
	v.Position++
}

// begin takes the configuration. Where the log begins with a view of its removed records, that becomes v.
func (v *View) begin(c *event.Config) {
	v.Config, v.Limit = c.WithoutView(), c.Limit
	if b := c.Begins; b != nil {
		var before View
		if cbor.Unmarshal(b.View, &before) == nil && before.Fold == Fold {
			before.Config, before.Within = v.Config, b.Head-1
			*v = before
		}
		v.Position = b.First
	}
}

// Beginning returns the view for the beginning of a log, see [event.Beginning]; nil if it is larger than most bytes.
func (v *View) Beginning(most int) []byte {
	c := *v
	c.Config = nil
	p, err := cbor.Marshal(&c)
	if err != nil || len(p) > most {
		return nil
	}
	return p
}

func (v *View) points(p *event.Points) {
	if p.Series == Partner {
		v.met(p)
		return
	}
	s := v.Find(p.Series)
	if s == nil {
		v.Series = append(v.Series, Series{Name: p.Series})
		s = &v.Series[len(v.Series)-1]
	}
	s.add(p)
	if p.Series == Parent {
		v.points(v.founders(p))
	}
}

// newcomers makes each member that joins with plan p its own founder, even if the id was in use before.
func (v *View) newcomers(p *event.Plan) {
	if v.Find(Founder) == nil {
		return
	}
	out := &event.Points{Round: p.At, Series: Founder}
	for _, m := range p.New.Members {
		if !p.Old.Has(m) {
			out.Members, out.Values = append(out.Members, m), append(out.Values, float64(m))
		}
	}
	if len(out.Members) > 0 {
		v.points(out)
	}
}

// founders returns the first ancestors of members, given their parents in a round: the founder of the parent, or the
// parent itself if it has none. It uses the founders from before the round, so after a rollback the lines continue
// correctly.
func (v *View) founders(p *event.Points) *event.Points {
	out := &event.Points{Round: p.Round, Series: Founder, Members: p.Members}
	line := v.Find(Founder)
	for _, parent := range p.Values {
		x := parent
		if parent >= 0 && parent < float64(Whole) {
			if f, ok := line.Last(engine.Member(parent)); ok {
				x = f
			}
		}
		out.Values = append(out.Values, x)
	}
	return out
}

func (v *View) evaluation(e *event.Evaluation) {
	scores := v.Config.Scores()
	if x := scores[0].Of(e); v.Evaluations == 0 || math.IsNaN(v.BestError) || scores[0].Better(x, v.BestError) {
		v.BestError = x
		v.note(event.LevelInfo, KindEvaluation, e.Round, bestText(scores[0], x))
	}
	v.Evaluation, v.Evaluations = e, v.Evaluations+1
	for _, s := range scores {
		if s.Series != TestLoss {
			v.points(scalar(s.Series, e.Round, s.Of(e)))
		}
	}
	v.points(scalar(TestLoss, e.Round, e.TestLoss))
	if e.Validation != nil {
		for _, s := range v.Config.ValidationScores() {
			v.points(scalar(s.Series, e.Round, s.Of(e)))
		}
	}
}

// bestText is the entry for a score that is better than all before it. Other scores have none: a run with a test each
// epoch would fill the event list.
func bestText(s event.Score, x float64) string {
	text := fmt.Sprintf("%s %.4g", s.Title, x)
	if unit := s.Unit(); unit != "" {
		text += " " + unit
	}
	return text + ", the best so far"
}

func (v *View) commit(c *event.Commit) {
	v.settle(false)
	old := v.Progress
	v.Clock.Begin(old)
	v.Clock.Commit(c)
	d := event.Progress{
		Rounds:      c.Rounds,
		Steps:       saturatingSub(c.Progress.Steps, old.Steps),
		Samples:     saturatingSub(c.Progress.Samples, old.Samples),
		Evaluations: saturatingSub(c.Progress.Evaluations, old.Evaluations),
		Epochs:      max(0, c.Progress.Epochs-old.Epochs),
	}
	sent := v.Ledger.add(c)
	v.sent(&v.Ledger.Ring[len(v.Ledger.Ring)-1])
	v.paced(c, d)
	v.Rates.observe(float64(c.Nanos)/1e9, d, sent)
	v.Tally.commit(c, d)
	v.Hash = c.Hash
	v.reach(old, c.Progress)
	v.Progress, v.Committed = c.Progress, v.Trained
}

// reach sets the progress of edits whose round is within the commit, by interpolation.
func (v *View) reach(from, to event.Progress) {
	for i := range v.Edits {
		e := &v.Edits[i]
		if e.At <= from.Rounds || e.At > to.Rounds || e.Epochs != 0 || e.Steps != 0 || to.Rounds <= from.Rounds {
			continue
		}
		v.Edits = slices.Clone(v.Edits)
		e = &v.Edits[i]
		if e.At == to.Rounds { // exact: a schedule can be continued from here
			e.Epochs, e.Steps = to.Epochs, to.Steps
			continue
		}
		t := float64(e.At-from.Rounds) / float64(to.Rounds-from.Rounds)
		e.Epochs = from.Epochs + t*(to.Epochs-from.Epochs)
		e.Steps = from.Steps + uint64(t*float64(saturatingSub(to.Steps, from.Steps)))
	}
}

// saturatingSub returns a-b, or 0 if b is larger.
func saturatingSub(a, b uint64) uint64 {
	if a < b {
		return 0
	}
	return a - b
}

func scalar(name string, round uint64, x float64) *event.Points {
	return &event.Points{Round: round, Series: name, Members: []engine.Member{Whole}, Values: []float64{x}}
}

func (v *View) edit(e event.Edit, at int64) {
	old := ""
	// The edit of another algorithm belongs to a swap, after which knobs have their defaults.
	if v.Plan == nil || e.Algorithm == v.Plan.Algorithm {
		for _, x := range v.Edits {
			if x.Algorithm == e.Algorithm && x.Knob == e.Knob && !x.Void {
				old = x.Expr
			}
		}
	}
	v.Edits = append(v.Edits, Edit{Edit: e, Old: old, When: at})
	if e.Why == "" && (e.FromSpec() || e.At == 0 && !e.Commanded()) { // an initial edit of the run
		return
	}
	text := e.Knob + " " + timeline.Change(e, old)
	who := ""
	if !e.FromSpec() {
		who = e.Whose()
	}
	v.mark(Mark{Round: e.First(), Text: text, Who: who})
	text = strings.ReplaceAll(text, "→", " → ")
	v.turned(e.First(), text)
	v.note(event.LevelInfo, "edit", e.First(), text+by(e.Whose()))
}

func by(who string) string {
	if who == "" {
		return ""
	}
	return " (" + who + ")"
}

func (v *View) plan(p *event.Plan) {
	old := v.Plan
	v.Plan = p
	v.Tally.plan(p, v.Progress.Rounds)
	for _, e := range p.Timeline {
		if !slices.ContainsFunc(v.Edits, func(x Edit) bool {
			return x.At == e.At && x.Algorithm == e.Algorithm && x.Knob == e.Knob && x.Expr == e.Expr
		}) {
			v.Edits = append(v.Edits, Edit{Edit: e, When: v.Last})
		}
	}
	v.void(p)
	if old != nil && p.At < v.Progress.Rounds && p.From == event.Saved {
		v.back(p.At)
	}
	v.Clock.Back(p.At)
	if p.At != v.Progress.Rounds {
		v.Progress.Rounds = p.At
		if c := v.Checkpoint; c != nil && c.Round == p.At {
			v.Progress = c.Progress
		}
	}
	for s := range v.all() {
		s.forget(p.New)
		if swaps(p) {
			s.swaps++
		}
	}
	if swaps(p) { // recent commits and rates are of the previous algorithm
		v.Ledger.Ring, v.Rates = nil, Rates{}
	}
	if !slices.Equal(p.Old.Members, p.New.Members) || !slices.Equal(p.Old.Owner, p.New.Owner) {
		v.Ledger.Since = p.Epoch
	}
	text, level := planText(p), event.LevelInfo
	if len(p.Lost) > 0 || p.Cause == event.CauseDeath {
		level = event.LevelWarning
	}
	at := p.At
	if swaps(p) || p.Cause == event.CauseResize { // like an edit, it is shown at the first round in which it is in effect
		at++
	}
	v.note(level, "plan", at, text)
	v.hosted(old, p)
	if old == nil {
		return
	}
	v.newcomers(p)
	v.regroup(p)
	k := Mark{Round: at, Alert: level == event.LevelWarning}
	if before, after := len(p.Old.Members), len(p.New.Members); before != after {
		k.Before, k.After = before, after
	}
	switch {
	case swaps(p):
		k.Text, k.Swap = p.OldAlg+"→"+p.Algorithm, true
		v.mark(k)
		v.turned(at, p.OldAlg+" → "+p.Algorithm)
	case k.Before != k.After:
		k.Text = fmt.Sprintf("members %d→%d", k.Before, k.After)
		v.mark(k)
		v.turned(at, fmt.Sprintf("members %d → %d", k.Before, k.After))
	case level == event.LevelWarning || p.From == event.Saved:
		v.mark(Mark{Round: p.At, Text: string(p.Cause), Alert: level == event.LevelWarning})
	}
}

// swaps reports whether a plan replaces the algorithm.
func swaps(p *event.Plan) bool { return p.OldAlg != "" && p.OldAlg != p.Algorithm }

// void updates which edits of the plan's algorithm are void. A swap resets the knobs to their defaults, so it voids all
// edits except those in its timeline. A plan that rolls back to before a swap makes the edits in its timeline valid
// again.
func (v *View) void(p *event.Plan) {
	v.Edits = slices.Clone(v.Edits)
	for i := range v.Edits {
		if e := &v.Edits[i]; e.Algorithm == p.Algorithm {
			e.Void = !slices.ContainsFunc(p.Timeline, e.Same) && (e.Void || swaps(p))
		}
	}
}

func planText(p *event.Plan) string {
	if p.Note != "" {
		return p.Note
	}
	members, workers := Plural(len(p.New.Members), "member"), Plural(len(p.New.Workers()), "worker")
	text := fmt.Sprintf("plan %d: %s with %s on %s", p.Epoch, p.Algorithm, members, workers)
	if p.Cause != "" {
		text += " (" + string(p.Cause) + ")"
	}
	return text
}

// back removes the points, marks and the evaluation after round r.
func (v *View) back(r uint64) {
	if v.Evaluation != nil && v.Evaluation.Round > r {
		v.Evaluation = nil
	}
	for s := range v.all() {
		s.truncate(r)
	}
	for _, some := range [][]Series{v.Machines, v.Speed} {
		for i := range some {
			some[i].truncate(r)
		}
	}
	v.Marks = slices.DeleteFunc(slices.Clone(v.Marks), func(m Mark) bool { return m.Round > r })
	v.Turns = slices.DeleteFunc(slices.Clone(v.Turns), func(t turn) bool { return t.First > r })
}

func (v *View) state(s *event.State) {
	changed := s.Phase != v.State.Phase
	v.State = *s
	if s.Reason == event.Resumed {
		v.Before = v.Trained
	}
	if s.Limit != nil {
		v.Limit = *s.Limit
	}
	if !changed {
		return
	}
	if v.Running() {
		v.trainsAgain()
	}
	if v.Over() {
		v.settle(true)
	}
	level, text := event.LevelInfo, string(s.Phase)
	if s.Phase == event.Failed {
		level = event.LevelError
	}
	if s.Reason != "" {
		text += ": " + s.Reason
	}
	v.note(level, "state", s.Round, text)
}

// mark adds a mark. It removes the oldest ones if there are too many.
func (v *View) mark(m Mark) {
	if v.Marks = append(v.Marks, m); len(v.Marks) > maxMarks {
		v.Marks = slices.Delete(slices.Clone(v.Marks), 0, maxMarks/4)
	}
}

// note adds an entry to the event list. It removes the oldest ones if there are too many.
func (v *View) note(level event.Level, kind string, round uint64, text string) {
	v.Lane = append(v.Lane, Entry{
		At:      v.Position,
		When:    v.Last,
		Trained: v.Trained,
		Round:   round,
		Level:   level,
		Kind:    kind,
		Text:    text,
	})
	v.Events++
	if len(v.Lane) > maxLane {
		v.Lane = slices.Delete(slices.Clone(v.Lane), 0, maxLane/4)
	}
}
