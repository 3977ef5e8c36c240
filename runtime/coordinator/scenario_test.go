package coordinator

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/catalog"
	"brood/runtime/event"
	"brood/runtime/message"
)

var update = flag.Bool("update", false, "write the effects of the core into the scenarios of testdata")

// TestScenarios plays the files of testdata, in the style of etcd's raft: a block of commands, a line ----, and all
// effects of the commands, up to an empty line. A line that starts with # is a comment. With -update the test rewrites
// the effects, to be reviewed in the diff.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d scenarios, %v", len(files), err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			old, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			is := perform(t, strings.ReplaceAll(string(old), "\r\n", "\n"))
			if *update {
				if err := os.WriteFile(name, []byte(is), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			was, now := strings.Split(strings.ReplaceAll(string(old), "\r\n", "\n"), "\n"), strings.Split(is, "\n")
			for i := range max(len(was), len(now)) {
				if i >= len(was) || i >= len(now) || was[i] != now[i] {
					t.Fatalf("%s:%d: the effects differ; if the new ones are correct, use -update\n"+
						"was: %s\nis:  %s", name, i+1, three(was, i), three(now, i))
				}
			}
		})
	}
}

// TestScenariosCanFail: a missing effect and an unexpected one are both detected.
func TestScenariosCanFail(t *testing.T) {
	const formatEffect = "run workers=1\njoin 0\n----\n"
	is := perform(t, formatEffect)
	if is == formatEffect || perform(t, is) != is || perform(t, strings.Replace(is, "abort", "about", 1)) != is {
		t.Errorf("played %q", is)
	}
}

// three returns three lines from index i on.
func three(lines []string, i int) string {
	return strings.Join(lines[min(i, len(lines)):min(i+3, len(lines))], "\n     ")
}

// perform executes the commands of a scenario and returns its text with their effects.
func perform(t *testing.T, text string) string {
	t.Helper()
	var out []string
	s := &scenario{testRun: testRun{t: t, now: time.Unix(1, 0), sent: map[int][]any{}}}
	skip := false
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		switch {
		case line == "":
			skip = false
			out = append(out, "")
		case skip:
		case line == "----":
			skip = true
			out = append(append(out, line), s.lines...)
			s.lines = nil
		case strings.HasPrefix(line, "#"):
			out = append(out, line)
		default:
			out = append(out, line)
			if err := s.execute(strings.Fields(line)); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		}
	}
	if len(s.lines) > 0 {
		t.Fatalf("the last commands have no ----; their effects are %q", s.lines)
	}
	return strings.Join(out, "\n") + "\n"
}

// scenario is a testRun that executes commands and records effects as lines.
type scenario struct {
	testRun
	cfg   Config
	lines []string
	id    uint64
	last  message.Done
}

func (s *scenario) step(ev any) {
	for _, x := range s.testRun.step(ev) {
		s.lines = append(s.lines, formatEffect(x))
	}
}

// execute executes a command: a word, the numbers of workers, and KEY=VALUE.
func (s *scenario) execute(words []string) error {
	verb, args := words[0], map[string]string{}
	var workers []int
	var rest []string
	for _, w := range words[1:] {
		if n, err := strconv.Atoi(w); err == nil {
			workers = append(workers, n)
		} else if k, v, ok := strings.Cut(w, "="); ok {
			args[k] = v
		} else {
			rest = append(rest, w)
		}
	}
	number := func(key string, or int) int {
		if n, err := strconv.Atoi(args[key]); err == nil {
			return n
		}
		return or
	}
	selected := func(or []int) []int {
		if len(workers) == 0 {
			return slices.Clone(or)
		}
		return workers
	}
	if s.core == nil && verb != "run" {
		return fmt.Errorf("the first command must be run")
	}
	text := strings.Join(rest, " ")
	switch verb {
	case "run": // workers, members, rounds, target, loss (policy), trouble (policy), keep (bytes), period (of saves)
		period, err := time.ParseDuration(cmp.Or(args["period"], "0"))
		if err != nil {
			return err
		}
		limit := event.Limit{Rounds: uint64(number("rounds", testRounds)),
			Target: strings.Replace(args["target"], ":", "=", 1)}
		s.cfg = Config{Limit: limit, Algorithm: "parle", Members: number("members", 4), Wait: number("workers", 2),
			Lookup: catalog.Lookup,
			Layout: engine.Layout{Params: 10}, Data: optim.DataSize{Train: 100, Validation: 10},
			OnLoss: LossPolicy(args["loss"]), OnTrouble: TroublePolicy(args["trouble"]), Keep: int64(number("keep", 0)),
			SavePeriod: period}
		return s.begin()
	case "crash": // another process resumes from the log
		return s.crash()
	case "join":
		for _, w := range workers {
			s.step(Joined{Worker: w})
		}
	case "died":
		for _, w := range workers {
			s.step(Lost{w, text})
		}
	case "leaving":
		for _, w := range workers {
			s.step(message.Leaving{Worker: w})
		}
	case "ready": // the named workers, or all that the plan waits for
		for _, w := range selected(s.core.pending) {
			s.step(message.Ready{Worker: w, Epoch: s.core.epoch})
		}
	case "done": // each reports its oldest grant; arguments: loss of the centre, extra (ms), differs (in a shared block)
		for _, w := range selected(s.core.roster.Workers()) {
			g, ok := s.oldest(w)
			if !ok {
				return fmt.Errorf("worker %d has no grant", w)
			}
			d := s.report(w, g)
			d.Extra = int64(number("extra", 0)) * int64(time.Millisecond)
			for i := range d.Points {
				x, err := strconv.ParseFloat(args["loss"], 64)
				if err == nil && d.Points[i].Series == event.SeriesCentre {
					d.Points[i].Values[0] = x
				}
			}
			if slices.Contains(rest, "differs") {
				setDigest(&d, message.ProgressBlock+"/shared", [32]byte{byte(w), 99})
			}
			d.Ended = g.Limit.Reached(d.Progress)
			s.last = d
			s.step(d)
		}
	case "again": // the newest report is sent again
		s.step(s.last)
	case "failed":
		s.step(message.Failed{Worker: workers[0], Epoch: s.core.epoch, Err: text})
	case "blows": // a block of a member of the worker is not finite
		g, ok := s.oldest(workers[0])
		if !ok {
			return fmt.Errorf("worker %d has no grant", workers[0])
		}
		nf := &message.NonFinite{Block: "x", Member: s.core.roster.Hosted(workers[0])[0], From: g.From, To: g.To}
		s.step(message.Failed{Worker: workers[0], Epoch: s.core.base, Err: "not finite", NonFinite: nf})
	case "never": // the first worker never reached the second
		s.step(message.Failed{
			Worker: workers[0],
			Epoch:  s.core.epoch,
			Err:    "it does not answer",
			Cut:    &workers[1],
			Never:  true,
		})
	case "loses": // the connection to the second worker broke
		s.step(message.Failed{Worker: workers[0], Epoch: s.core.epoch, Err: "nothing came for 1.6 s", Cut: &workers[1]})
	case "saved": // or the error that prevented it
		if s.core.saving == nil {
			return fmt.Errorf("no save is in progress")
		}
		for _, w := range selected(s.core.roster.Workers()) {
			m := message.Saved{Worker: w, Epoch: s.core.base, At: s.core.saving.at, Err: text}
			if text == "" {
				digest := "blake3:" + strings.Repeat("0", 64)
				m.Files = []event.File{{Path: fmt.Sprintf("%d/%d", m.At, w), Digest: digest, Bytes: 1}}
			}
			s.step(m)
		}
	case "trouble":
		s.step(Trouble{event.PauseReason(rest[0]), strings.Join(rest[1:], " ")})
	case "interrupt":
		s.step(Interrupt{})
	case "pass": // let time pass
		d, err := time.ParseDuration(rest[0])
		if err != nil {
			return err
		}
		s.now = s.now.Add(d)
		s.step(Tick{})
	case "set", "swap", "pause", "resume", "stop", "save", "cordon", "drain", "uncordon":
		s.id++
		c := event.Command{ID: s.id, By: "ann", Action: event.Action(verb)}
		switch {
		case verb == "swap":
			c.Action, c.Algorithm = "", text
		case verb == "set":
			c.Action = ""
		case len(workers) > 0:
			c.Worker = workers[0]
		}
		for _, w := range words[1:] {
			if k, v, ok := strings.Cut(w, "="); ok {
				c.Set = append(c.Set, event.Setting{Knob: k, Expr: v})
			}
		}
		s.step(c)
	default:
		return fmt.Errorf("no such command")
	}
	return nil
}

func (s *scenario) begin() (err error) {
	s.core, err = New(s.cfg)
	return err
}

// oldest returns the oldest grant that the worker has not reported.
func (s *scenario) oldest(w int) (message.Grant, bool) {
	for at := s.core.committed; s.core.done[at] != nil; at = s.core.done[at].To {
		if s.core.done[at].claimAt[s.core.hosting.Place(w)] == 0 {
			return s.core.done[at].Grant, true
		}
	}
	return message.Grant{}, false
}

// crash replaces the core by a new one that resumes from the log, as if the last committed state had been recomputed.
func (s *scenario) crash() error {
	cp := &event.Checkpoint{}
	var pending event.Pending
	var good LastGood
	var edits []event.Edit
	for _, r := range s.log {
		pending.Take(r)
		good.Take(r)
		switch {
		case r.Edit != nil:
			edits = append(edits, *r.Edit)
		case r.Plan != nil:
			p := r.Plan
			cp.Round, cp.Epoch, cp.Roster, cp.Algorithm = p.At, p.Epoch, p.New, p.Algorithm
			edits = slices.Clone(p.Timeline)
		case r.Commit != nil:
			cp.Round, cp.Hash, cp.Progress = r.Commit.To, r.Commit.Hash, r.Commit.Progress
		}
	}
	s.cfg.Resume, s.cfg.Epoch, s.cfg.Asked, s.cfg.LastGood = cp, cp.Epoch, pending, good
	s.cfg.Cause, s.cfg.Late = event.CauseResume, nil
	for _, e := range edits {
		if e.At < cp.Round {
			cp.Timeline = append(cp.Timeline, e)
		} else {
			s.cfg.Late = append(s.cfg.Late, e)
		}
	}
	s.lines = append(s.lines, fmt.Sprintf("the log ends at round %d, with %d commands and %d edits not in effect",
		cp.Round, len(pending.Commands), len(s.cfg.Late)))
	s.sent = map[int][]any{}
	return s.begin()
}

// formatEffect formats an effect as one line.
func formatEffect(x Effect) string {
	switch x := x.(type) {
	case Send:
		return fmt.Sprintf("%d <- %s", x.Worker, formatOrder(x.Msg))
	case Release:
		return fmt.Sprintf("release %d", x.Worker)
	case Append:
		return "log " + formatRecord(x.Record)
	case Receipt:
		if !x.Accepted {
			return fmt.Sprintf("refused %d: %s", x.ID, x.Reason)
		}
		return fmt.Sprintf("accepted %d, from round %d on", x.ID, x.Round+1)
	case Exit:
		text := fmt.Sprintf("exit %s: %s", x.Phase, x.Reason)
		if x.Missed != "" {
			text += ", missed " + x.Missed
		}
		if x.Branch > 0 {
			text += fmt.Sprintf(", branch at %d", x.Branch)
		}
		return text
	case *Fault:
		return "fault " + x.Error()
	}
	panic(fmt.Sprintf("no format for %T", x))
}

func formatOrder(o message.Order) string {
	switch m := o.(type) {
	case message.Grant:
		text := fmt.Sprintf("grant epoch %d rounds %d to %d", m.Epoch, m.From+1, m.To)
		if m.Hold {
			text += ", hold"
		}
		if m.Onward {
			text += ", onward"
		}
		return text + formatEdits(m.Edits)
	case message.Abort:
		return fmt.Sprintf("abort before epoch %d", m.Epoch)
	case message.Plan:
		return formatPlan(m.Plan)
	case message.Save:
		return fmt.Sprintf("save round %d", m.At)
	case message.Stop:
		return "stop"
	case message.Evict:
		if m.After > 0 {
			return fmt.Sprintf("away for %s: %s", m.After, m.Why)
		}
		return "away: " + m.Why
	}
	panic(fmt.Sprintf("no format for %T", o))
}

func formatRecord(r event.Record) string {
	switch {
	case r.Plan != nil:
		return formatPlan(*r.Plan)
	case r.Edit != nil:
		return "edit" + formatEdits([]event.Edit{*r.Edit})
	case r.Commit != nil:
		return fmt.Sprintf("commit epoch %d round %d", r.Commit.Epoch, r.Commit.To)
	case r.Points != nil:
		return fmt.Sprintf("points %s of round %d", r.Points.Series, r.Points.Round)
	case r.Alert != nil:
		return fmt.Sprintf("alert %s %s: %s", r.Alert.Level, r.Alert.Kind, r.Alert.Text)
	case r.Checkpoint != nil:
		return fmt.Sprintf("checkpoint of round %d, epoch %d", r.Checkpoint.Round, r.Checkpoint.Epoch)
	case r.State != nil:
		return strings.TrimSuffix(fmt.Sprintf("state %s: %s", r.State.Phase, r.State.Reason), ": ")
	case r.Accepted != nil:
		return fmt.Sprintf("accepted command %d", r.Accepted.N)
	}
	panic(fmt.Sprintf("no format for %+v", r))
}

func formatPlan(p event.Plan) string {
	var hosts []string
	for _, w := range p.New.Workers() {
		hosts = append(hosts, fmt.Sprintf("%d hosts %v", w, p.New.Hosted(w)))
	}
	text := fmt.Sprintf("plan epoch %d after round %d (%s, from %s): %s, %s",
		p.Epoch, p.At, p.Cause, p.From, p.Algorithm, strings.Join(hosts, ", "))
	if len(p.Lost) > 0 {
		text += fmt.Sprintf(", lost %v", p.Lost)
	}
	if len(p.Mirrored) > 0 {
		text += fmt.Sprintf(", mirrored %v", p.Mirrored)
	}
	if p.Obeyed > 0 {
		text += fmt.Sprintf(", obeys %d", p.Obeyed)
	}
	return text + formatEdits(p.Timeline)
}

func formatEdits(edits []event.Edit) (text string) {
	for _, e := range edits {
		text += fmt.Sprintf(" [%s=%s from round %d]", e.Knob, e.Expr, e.First())
	}
	return text
}
