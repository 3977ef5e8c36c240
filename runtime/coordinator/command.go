package coordinator

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"brood/models/engine"
	"brood/models/usererr"
	"brood/optim"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/timeline"
)

// MembersKnob is the population size: a knob of the runtime, available with every algorithm.
var MembersKnob = optim.Knob{
	Name:    "members",
	Label:   event.MembersLabel,
	Title:   "population",
	Unit:    "members",
	Doc:     "members of the population; new ones enter as their blocks say, the highest ids leave first",
	Min:     1,
	Max:     event.MaxMembers,
	Integer: true,
	Default: 1,
	Scale:   optim.Log,
}

func (c *Coordinator) command(cmd event.Command) []Effect {
	round, fx, err := c.apply(cmd)
	if err != nil {
		return []Effect{Receipt{event.Receipt{ID: cmd.ID, Reason: err.Error(), Usage: usererr.Is(err)}}}
	}
	return append([]Effect{Receipt{event.Receipt{ID: cmd.ID, Accepted: true, Round: round}}}, fx...)
}

// apply validates a command as one transaction, stages its settings and performs its action. On an error nothing has
// changed. round is the last round granted so far: the command takes effect after it.
func (c *Coordinator) apply(cmd event.Command) (round uint64, fx []Effect, err error) {
	if c.base == c.cfg.Epoch && cmd.Action != event.Stop {
		return 0, nil, fmt.Errorf("the run has not begun: wait for its first round")
	}
	if c.ending != nil {
		return 0, nil, fmt.Errorf("the run is ending (%s): resume it first", c.ending.Reason)
	}
	if err := ValidateReason(cmd.Why); err != nil {
		return 0, nil, err
	}
	sets := len(cmd.Set) > 0 || cmd.Members != 0 || cmd.Algorithm != ""
	if !sets && cmd.Limit == nil && cmd.Action == "" {
		return 0, nil, usererr.Errorf("the command is empty: give knobs to set, members, an algorithm, a limit or an action")
	}
	// before anything is staged: the command applies as a whole or not at all
	if err := c.validateAction(cmd); err != nil {
		return 0, nil, err
	}
	if sets {
		a := event.Accepted{N: c.asked + 1, Command: cmd}
		if err := c.stage(a); err != nil {
			return 0, nil, err
		}
		c.asked = a.N
		fx = append(fx, c.record(event.Record{Accepted: &a}))
	}
	if cmd.Limit != nil {
		c.cfg.Limit, c.cfg.Met = *cmd.Limit, ""
		fx = append(fx, c.record(event.Record{State: &event.State{
			Round:  c.committed,
			Phase:  c.phase,
			Reason: "another limit by " + By(cmd),
			Limit:  cmd.Limit,
		}}))
	}
	switch cmd.Action {
	case event.Pause:
		fx = append(fx, c.enter(event.Paused, "by "+By(cmd)))
	case event.Resume:
		phase := event.Training
		if len(c.alive) == 0 { // the next plan continues the training
			phase = event.Waiting
		}
		fx = append(fx, c.enter(phase, "by "+By(cmd)))
	case event.Stop:
		fx = append(fx, c.end(event.Stopped, "by "+By(cmd))...)
	case event.Save:
		c.wantSave = true
	case event.Cordon, event.Drain, event.Uncordon:
		fx = append(fx, c.applyCordon(cmd)...)
	}
	return c.granted, fx, nil
}

// validateAction rejects an action, or its limit, that the state of the run does not permit.
func (c *Coordinator) validateAction(cmd event.Command) error {
	switch cmd.Action {
	case "", event.Kill, event.Stop, event.Save: // the shell handles Kill
	case event.Pause:
		if c.phase == event.Paused {
			return fmt.Errorf("the run is already paused")
		}
	case event.Resume:
		if c.phase != event.Paused {
			return fmt.Errorf("the run is not paused")
		}
	case event.Cordon, event.Drain, event.Uncordon:
		if err := c.validateCordon(cmd); err != nil {
			return err
		}
	default:
		return usererr.Errorf("unknown action %q: use pause, resume, stop, save, cordon, drain or uncordon", cmd.Action)
	}
	if cmd.Limit != nil {
		return c.validateLimit(*cmd.Limit)
	}
	return nil
}

// validateLimit rejects a limit that the run cannot reach or has already reached.
func (c *Coordinator) validateLimit(l event.Limit) error {
	if l == (event.Limit{}) {
		return usererr.Errorf("the limit names no end: give rounds, epochs, seconds or a target")
	}
	for _, x := range []struct {
		amount float64
		of     string
	}{{l.Epochs, "epochs"}, {l.Seconds, "seconds"}} {
		if !(x.amount >= 0) || math.IsInf(x.amount, 1) {
			return usererr.Errorf("the limit has %g %s: give a number above 0, or leave it out", x.amount, x.of)
		}
	}
	if l.Target != "" {
		if err := Within(l.Target, c.cfg.Maximises); err != nil {
			return err
		}
	}
	if err := CheckPatience(l.Patience, c.cfg.Validation); err != nil {
		return err
	}
	switch done := (event.Progress{Rounds: c.granted, Epochs: c.progress.Epochs}); {
	case l.Rounds > 0 && done.Rounds >= l.Rounds:
		return fmt.Errorf("round %d is already granted: give more rounds, or stop the run", done.Rounds)
	case l.Reached(done):
		return fmt.Errorf("%.4g epochs are already done: give more, or stop the run", done.Epochs)
	}
	return nil
}

// By formats who gave a command, and the reason if there is one: "NAME: REASON".
func By(cmd event.Command) string {
	who := cmp.Or(cmd.By, "an operator")
	if cmd.Why != "" {
		who += ": " + cmd.Why
	}
	return who
}

// requester returns the suffix of a plan's note that names who asked for the plan; "" if the command has no reason.
func requester(cmd event.Command) string {
	if cmd.Why == "" {
		return ""
	}
	return ", by " + By(cmd)
}

// ValidateReason rejects a reason that is longer than event.MaxWhy or is not one line of printable text.
func ValidateReason(why string) error {
	if n := utf8.RuneCountInString(why); n > event.MaxWhy {
		return usererr.Errorf("the reason of the command has %d characters: give it in %d or fewer", n, event.MaxWhy)
	}
	if !utf8.ValidString(why) || strings.ContainsFunc(why, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return usererr.Errorf("the reason of the command has unprintable characters: give one line of text")
	}
	return nil
}

// stage validates settings, a resize and a swap together. It stores edits for the next grant, or a change for the next
// plan if the blocks, the algorithm or the population changes. On an error nothing is staged.
func (c *Coordinator) stage(a event.Accepted) error {
	cmd, next := a.Command, c.target()
	if cmd.Of != "" && cmd.Algorithm == "" && cmd.Of != next.alg {
		verb := "runs"
		if next.alg != c.alg.Name {
			verb = "takes over"
		}
		return fmt.Errorf("these knobs are of %s, and %s %s: nothing is set", cmd.Of, next.alg, verb)
	}
	swap := cmd.Algorithm != "" && cmd.Algorithm != next.alg
	if swap {
		next.alg, next.reset = cmd.Algorithm, true
		next.edits = withoutEdits(next.edits, cmd.Algorithm)
	}
	alg, err := c.cfg.Lookup(next.alg)
	if err != nil {
		return err
	}
	size := cmd.Members
	var edits []event.Edit
	for _, s := range cmd.Set {
		if s.Knob == MembersKnob.Name {
			if size, err = parseMembers(s.Expr); err != nil {
				return err
			}
			continue
		}
		if _, ok := alg.Knob(s.Knob); !ok {
			return timeline.UnknownKnob(alg, s.Knob)
		}
		edits = append(edits, event.Edit{
			Algorithm: alg.Name,
			Knob:      s.Knob,
			Expr:      s.Expr,
			By:        cmd.By,
			ID:        cmd.ID,
			Why:       cmd.Why,
			Obeys:     a.N,
		})
	}
	resize := size != 0 && size != len(next.members)
	if size != 0 {
		if err := MembersKnob.Validate(float64(size)); err != nil {
			return err
		}
		next.members = Resized(next.members, size)
	}
	before := c.foreseen(next)
	here := timeline.Position{Round: c.granted, Epochs: c.progress.Epochs, Steps: c.progress.Steps}
	shape := optim.Shape{Roster: collective.Place(next.members, []int{0}), Layout: c.cfg.Layout, Data: c.cfg.Data}
	if err := timeline.AcceptAll(alg, before, edits, shape, here); err != nil {
		return err
	}
	all := append(slices.Clip(before), at(c.granted, edits)...)
	if err := c.validateShape(alg, next.members, all, c.granted); err != nil {
		return err
	}
	structural, err := c.structural(alg, before, all)
	if err != nil {
		return err
	}
	structural = structural || c.undecided(alg, all) // only a plan makes workers measure
	if !swap && !resize && !structural && c.change == nil {
		c.staged = append(c.staged, edits...)
		return nil
	}
	next.edits = append(slices.Clone(next.edits), edits...)
	switch {
	case swap:
		next.cause = event.CauseSwap
		next.note = fmt.Sprintf("%s takes over, population %d%s", alg.Title, len(next.members), requester(cmd))
	case resize:
		next.cause, next.note = event.CauseResize, fmt.Sprintf("population is %d%s", len(next.members), requester(cmd))
	case structural && next.cause == "":
		next.cause = event.CauseKnob
	}
	c.change = &next
	return nil
}

// foreseen returns all edits after a change is applied, each with the first round at which it can take effect.
func (c *Coordinator) foreseen(ch change) []event.Edit {
	all, staged := c.edits, c.staged
	if ch.reset {
		all, staged = withoutEdits(all, ch.alg), withoutEdits(staged, ch.alg)
	}
	return slices.Concat(all, at(c.granted, staged), at(c.granted, ch.edits))
}

func at(round uint64, edits []event.Edit) []event.Edit {
	out := slices.Clone(edits)
	for i := range out {
		out[i] = timeline.Begin(out[i], round)
	}
	return out
}

func parseMembers(expr string) (int, error) {
	x, err := strconv.ParseFloat(expr, 64)
	if err != nil || x != math.Trunc(x) {
		return 0, usererr.Errorf("members = %q must be a whole number", expr)
	}
	return int(x), MembersKnob.Validate(x)
}

// Resized returns members, which must ascend, resized to n: it grows by the lowest free ids and shrinks from the
// highest.
func Resized(members []engine.Member, n int) []engine.Member {
	if n <= len(members) {
		return slices.Clone(members[:n])
	}
	out, next, free := make([]engine.Member, 0, n), 0, n-len(members)
	for id := engine.Member(0); len(out) < n; id++ {
		switch {
		case next < len(members) && members[next] == id:
			out, next = append(out, id), next+1
		case free > 0:
			out, free = append(out, id), free-1
		}
	}
	return out
}

// maxCorners bounds the combinations of schedule values that structural checks.
const maxCorners = 4096

// structural reports whether edits change the blocks. It rejects a schedule that would change them at a later round: a
// plan needs a round that is known in advance.
func (c *Coordinator) structural(alg *optim.Algorithm, before, after []event.Edit) (bool, error) {
	was, err := timeline.New(alg, before)
	if err != nil {
		return false, err
	}
	will, err := timeline.New(alg, after)
	if err != nil {
		return false, err
	}
	at := timeline.Position{Round: c.granted, Epochs: c.progress.Epochs, Steps: c.progress.Steps}
	blocks := func(v optim.Values) []optim.Block { return alg.Blocks(v, c.cfg.Layout) }
	now := blocks(will.Values(at))
	for _, e := range after { // after an abort, edits may take effect in later rounds
		p := timeline.Position{Round: e.At, Epochs: at.Epochs, Steps: at.Steps}
		if e.At > at.Round && !slices.Equal(now, blocks(will.Values(p))) {
			return false, fmt.Errorf("%s changes its state before round %d, from which %s = %s applies: retry after that round",
				alg.Title, e.At+1, e.Knob, e.Expr)
		}
	}
	reach := []optim.Values{will.Values(at)} // every combination of values that the schedules can reach
	for _, k := range alg.Knobs {
		sched, _, ok := will.Ruling(k.Name, at.Round)
		if !ok || sched.Constant() {
			continue
		}
		for _, v := range slices.Clone(reach) {
			for _, x := range sched.Range(k) {
				moved := v.With(k.Name, x)
				if !slices.Equal(now, blocks(moved)) {
					return false, fmt.Errorf("%s = %s would change the layout of the state before it ends: "+
						"keep the schedule on one side, or set it in steps by hand", k.Name, sched)
				}
				if len(reach) < maxCorners {
					reach = append(reach, moved)
				}
			}
		}
	}
	return !slices.Equal(blocks(was.Values(at)), now), nil
}
