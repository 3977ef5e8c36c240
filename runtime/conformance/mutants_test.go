package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"brood/models/longtest"
)

// mutant is a defect in one line of product code, and the test that must detect it. seed is the run that detects it in
// the simulator of the coordinator (sim) or in the fault fuzz (fuzz); 0 for other tests.
type mutant struct {
	name     string
	file     string // path in the module
	old, new string
	pkg, run string
	seed     int
}

const (
	sim  = "^TestSimulator$"
	fuzz = "^TestFaultFuzz$"
)

var mutants = []mutant{
	{"restore is skipped", "runtime/worker/snapshot.go",
		"s.env.Engine.Do(context.WithoutCancel(ctx), copyState(stateOf(s.env), snap.state)...)", "s.env.Engine.Do(ctx)",
		"./runtime/conformance", fuzz, 1},
	{"no snapshot is taken", "runtime/worker/snapshot.go", "\ts.snaps[s.round] = snap\n", "",
		"./runtime/worker", "^TestAbortedGrantLeavesNoTrace$", 0},
	{"snapshots are dropped one commit too early", "runtime/worker/grant.go", "if at < g.Committed {",
		"if at <= g.Committed {",
		"./runtime/worker", "^TestAbortedGrantLeavesNoTrace$", 0},
	{"a checkpoint has the current state, not that of its round", "runtime/worker/reshape.go",
		"if snap, ok := s.snaps[at]; ok {", "if snap, ok := s.snaps[at]; ok && s.round == at {",
		"./runtime/worker", "^TestSaveOfAPast$", 0},
	{"the timeline is not truncated on restore", "runtime/worker/snapshot.go", "return s.time.Truncate(snap.edits)",
		"return nil",
		"./runtime/worker", "^TestRestore$", 0},
	{"the progress block is not carried", "runtime/worker/carry.go",
		"out := []optim.Block{{Name: message.ProgressBlock, Shared: true, Cols: progCols, Type: engine.U64, Record: true}}",
		"out := []optim.Block{}",
		"./runtime/conformance", fuzz, 2},
	{"rows move by position, not by member", "runtime/worker/carry.go",
		"edges = append(edges, collective.Edge{From: m, To: m})",
		"edges = append(edges, collective.Edge{From: left.Members[0], To: m})",
		"./runtime/worker", "^TestRowsFollowMembers$", 0},
	{"a mirror keeps the newest round only", "runtime/worker/mirror.go", "\ts.mirrors.at[s.round] = m\n",
		"\ts.mirrors.at = map[uint64]state{s.round: m}\n",
		"./runtime/worker", "^TestMirrorOfAPast$", 0},
	{"rows of another state are continued from", "runtime/coordinator/reattach.go", "case err == nil && root != c.hash:",
		"case false:",
		"./runtime/coordinator", "^TestReattachRecomputes$", 0},
	{"a worker keeps a plan that was never logged", "runtime/worker/held.go", "\tw.epoch = at.Epoch\n", "",
		"./runtime/worker", "^TestHolds$", 0},
	{"a run continues from a mirror that is gone", "runtime/coordinator/membership.go",
		"if !at.Has(m) || !c.here(at.Of(m)) {", "if !at.Has(m) {",
		"./runtime/coordinator", "^TestScenarios$", 0},
	{"frames of earlier epochs are accepted", "transport/local/local.go", "if f.epoch == epoch {", "if f.epoch <= epoch {",
		"./transport/local", "^TestLink$", 0},
	{"frames of a later epoch are accepted early", "transport/local/local.go", "if f.epoch > epoch {",
		"if f.epoch > epoch+1 {",
		"./transport/local", "^TestLink$", 0},
	{"sums depend on the order of workers", "optim/collective/reduce.go", "t := engine.Sum{",
		"for i := range tree { tree[i] = [2]int{max(0, len(src)+i-1) * min(i, 1), i + 1} }; t := engine.Sum{",
		"./optim/collective", "^TestAllReduce$", 0},
	{"the tree uses ranks instead of ids", "optim/collective/reduce.go", "m, ws := src.Cols, c.Workers\n",
		"m, ws := src.Cols, c.Workers; leaves = Roster{Members: IDs(len(leaves.Members)), Owner: leaves.Owner}\n",
		"./optim/collective", "^TestAllReduce$", 0},
	{"a received vector overwrites the previous one", "optim/collective/reduce.go", "\tc.used++\n", "",
		"./optim/collective", "^TestAllReduce$", 0},
	{"the sequence is not checked", "optim/collective/comm.go", "if seq != wantSeq || got != string(op)",
		"if got != string(op)",
		"./optim/collective", "^TestOutOfStep$", 0},
	{"a parent is sent once per child", "optim/collective/move.go", "shipped[p] = true", "shipped[p] = false",
		"./optim/collective", "^TestMove$", 0},
	{"an edit takes effect one round late", "runtime/timeline/timeline.go", "if n.mine && n.edit.At <= p.Round {",
		"if n.mine && n.edit.At < p.Round {",
		"./runtime/coordinator", sim, 1},
	{"lost members are not reseeded", "runtime/coordinator/membership.go", "slices.Sorted(maps.Keys(c.lost)),",
		"slices.Sorted(maps.Keys(c.lost))[:0],",
		"./runtime/coordinator", sim, 11},
	{"a commit does not wait for the last worker", "runtime/coordinator/commit.go",
		"first.received < len(c.hosting.Workers) {", "first.received < max(1, len(c.hosting.Workers)-1) {",
		"./runtime/coordinator", sim, 1},
	{"an edge from another worker is dropped", "optim/collective/move.go", "if begin.has(e.From) || end.has(e.To) {",
		"if begin.has(e.From) || end.has(e.From) {",
		"./optim/collective", "^TestMove$", 0},
	{"a member's row is sent to one worker only", "optim/collective/roster.go", "case first[rank] == 0:",
		"case first[rank] != 0:\n\t\t\t\tcontinue\n\t\t\tcase first[rank] == 0:",
		"./optim/collective", "^TestCrossings$", 0},
	{"drift is not detected", "runtime/coordinator/agree.go", "string(sum[:]) != k.row(i) {",
		"string(sum[:]) != k.row(i) && false {",
		"./runtime/coordinator", sim, 36},
	{"the ends of frames are not compared", "runtime/coordinator/suspicion.go", "if sent[way] != received[way] {",
		"if sent[way] != received[way] && false {",
		"./runtime/coordinator", "^TestLiars$", 0},
	{"copies of rows are not compared", "runtime/coordinator/suspicion.go", "!ok || sum != rows[c.from[place]+i]",
		"false && (!ok || sum != rows[c.from[place]+i])",
		"./runtime/coordinator", "^TestMirrors$", 0},
	{"an impossible frame accuses its sender at once", "runtime/coordinator/suspicion.go", "if len(found) > 0 {",
		"if len(found) > 0 && false {",
		"./runtime/coordinator", "^TestFaultyByOthers$", 0},
	{"shared rows of a plan are not compared", "runtime/coordinator/plan_rows.go", "if len(count) <= 1 {", "if true {",
		"./runtime/coordinator", "^TestWrongReady$", 0},
	{"an audit ignores the rows after the rounds", "runtime/coordinator/audits.go", "finite && !c.matches(a.Digests,",
		"false && !c.matches(a.Digests,",
		"./runtime/coordinator", "^TestLiars$", 0},
	{"the witness of a pair is evicted", "runtime/coordinator/suspicion.go", "liar := common[0]", "liar := first.aside",
		"./runtime/coordinator", "^TestLiars$", 0},
	{"an auditor repeats the rounds with its own rows", "runtime/worker/audit.go", "case x.member != engine.None:",
		"case x.member != engine.None && len(own) == 0:",
		"./runtime/conformance", "^TestConformance$/^parle$/^placement$", 0},
	{"a worker's progress is not checked", "runtime/coordinator/check.go",
		"if err := c.checkProgress(d.To, d.Progress); err != nil {",
		"if err := c.checkProgress(d.To, d.Progress); err != nil && false {",
		"./runtime/coordinator", "^TestInvalidReports$", 0},
	{"an accepted command is not logged", "runtime/coordinator/command.go",
		"fx = append(fx, c.record(event.Record{Accepted: &a}))", "",
		"./runtime/coordinator", sim, 53},
	{"commands accepted before a crash are not applied", "runtime/coordinator/coordinator.go",
		"for _, a := range cfg.Asked.Commands {", "for _, a := range cfg.Asked.Commands[:0] {",
		"./runtime/coordinator", sim, 3},
	{"an edit is not logged", "runtime/coordinator/coordinator.go",
		"fx = append(fx, c.record(event.Record{Edit: &e}))", "_ = e",
		"./runtime/coordinator", sim, 3},
	{"an epoch starts without an abort", "runtime/coordinator/membership.go",
		"Send{w, message.Abort{Epoch: c.epoch}}, Send{w, m}", "Send{w, m}",
		"./runtime/coordinator", sim, 21},
	{"a plan is based on an epoch that is not ready", "runtime/coordinator/membership.go",
		"p.Epoch, p.Base, p.Timeline = c.epoch, c.base,", "p.Epoch, p.Base, p.Timeline = c.epoch, c.epoch-1,",
		"./runtime/coordinator", sim, 19},
	{"a swap loses its edits when its plan is interrupted", "runtime/coordinator/membership.go", "if ch.reset {",
		"if ch.alg != c.alg.Name {",
		"./runtime/coordinator", sim, 275},
	{"a rollback drops the initial knobs", "runtime/coordinator/membership.go", "c.edits, c.staged = then, nil",
		"c.edits, c.staged = nil, nil",
		"./runtime/coordinator", sim, 255},
	{"a rejected command is partly applied", "runtime/coordinator/command.go",
		"if err := c.validateAction(cmd); err != nil {",
		"if err := c.validateAction(cmd); err != nil && c.stage(event.Accepted{Command: cmd}) == nil {",
		"./runtime/coordinator", sim, 45},
	{"a save that a plan interrupts is lost", "runtime/coordinator/membership.go",
		"c.wantSave = c.wantSave || c.saving != nil", "_ = c.wantSave",
		"./runtime/coordinator", sim, 240},
	{"the state after a plan counts as saved", "runtime/coordinator/coordinator.go",
		"cp.Hash == c.hash && cp.Epoch == c.base", "cp.Hash == c.hash",
		"./runtime/coordinator", sim, 683},
	{"a grant follows one that may end early", "runtime/coordinator/coordinator.go", "c.held || c.cfg.Limit.Measured()",
		"c.cfg.Limit.Measured()",
		"./runtime/coordinator", "^TestHeldGrantIsFollowedByNone$", 0},
	{"a lost link counts as a death", "runtime/coordinator/commit.go", "if e.Cut != nil && e.NonFinite == nil {",
		"if e.Cut != nil && e.NonFinite == nil && e.Epoch == 0 {",
		"./runtime/coordinator", sim, 1},
	{"rounds continue over a lost link", "runtime/coordinator/links.go",
		"\tc.voided = c.voided || c.granted > c.committed\n\tc.change, c.plan, c.retry = &next, nil, c.now.Add(wait)\n" +
			"\tc.granted = c.committed\n\tclear(c.done)\n", "\tc.change, c.plan, c.retry = &next, nil, c.now.Add(wait)\n",
		"./runtime/coordinator", sim, 101},
	{"a worker with lost links is evicted for good", "runtime/coordinator/links.go",
		"message.Evict{Why: e.Reason, After: after}", "message.Evict{Why: e.Reason}",
		"./runtime/coordinator", sim, 129},
	{"the reporting worker is evicted although it hosts members and the other none", "runtime/coordinator/links.go",
		"range []int{first, second} {", "range []int{first} {",
		"./runtime/coordinator", sim, 129},
	{"another worker's report evicts a newcomer for good", "runtime/coordinator/links.go",
		"return c.evictForNow(Lost{out, fmt.Sprintf(\"worker", "return c.evict(Lost{out, fmt.Sprintf(\"worker",
		"./runtime/coordinator", sim, 129},
	{"the reported worker is evicted at equal counts", "runtime/coordinator/links.go",
		"c.recentBreaks(*e.Cut); n > times {", "c.recentBreaks(*e.Cut); n >= times {",
		"./runtime/coordinator", "^TestWhoIsSentAway$", 0},
	{"the time of an eviction does not double", "runtime/coordinator/links.go", "breaks{times + 1, c.now}",
		"breaks{times, c.now}",
		"./runtime/coordinator", "^TestAwayLonger$", 0},
	{"evictions of one key count for another", "runtime/coordinator/links.go", "key := c.keys[e.Worker]", "key := \"\"",
		"./runtime/coordinator", "^TestAwayByKey$", 0},
	{"an evicted worker returns immediately", "runtime/remote/admit.go", "return time.Until(s.evictedUntil[n])",
		"return 0",
		"./runtime/remote", "^TestEvictedBeforeItJoins$", 0},
	{"a worker of this process returns immediately", "runtime/fleet/fleet.go",
		"f.returnDelays[x.Worker] = a.After", "_ = a",
		"./runtime/fleet", "^TestLocalEviction$", 0},
	{"messages are sent before their records are logged", "runtime/fleet/fleet.go",
		"case coordinator.Send:\n\t\t\tflush()\n", "case coordinator.Send:\n",
		"./runtime/fleet", "^TestWriteAhead$", 0},
	{"a cycle is counted by an undeclared knob", "optim/averaging/localsgd.go", `Cycle: optim.CycleOf("h")`,
		`Cycle: optim.CycleOf("slices")`,
		"./runtime/conformance", "^TestConformance$/^localsgd$/^declared$", 0},
	{"the same members participate in every cycle", "optim/averaging/participants.go",
		"e.Record(optim.BlockCycle).U[0], 0))", "0, 0))",
		"./optim/averaging", "^TestFedAvg$", 0},
	{"bytes are those of all members", "optim/averaging/participants.go", "\tif s.Drawn {\n",
		"\tif s.Drawn {\n\t\treturn s.AllReduceBytes(s.Roster, s.Layout.Params)\n\t}\n\tif s.Drawn {\n",
		"./runtime/conformance", "^TestVariants$/^fedavg", 0},
	{"members weigh equally in the mean", "optim/averaging/fedavg.go", "len(in.Members)*e.Samples(m)) / float64(total)",
		"total+0*e.Samples(m)) / float64(total)",
		"./optim/averaging", "^TestFedAvg$", 0},
	{"the mean of control variates moves as if all members had trained", "optim/averaging/scaffold.go",
		"optim.T(part, change)", "optim.T(part*0+1, change)",
		"./optim/averaging", "^TestSCAFFOLD$", 0},
	{"a member goes half of the way to the mean of its neighbours", "optim/gossip/d_psgd.go",
		"optim.Assign(x, optim.T(1, x), optim.T(1, moved))", "optim.Assign(x, optim.T(1, x), optim.T(0.5, moved))",
		"./optim/gossip", "^TestDPSGD$", 0},
	{"parts do not follow the number of members", "optim/parts.go", "d := dealing{n: len(e.Roster.Members), share",
		"d := dealing{n: max(5, e.dealing.n), share",
		"./optim", "^TestDeal$", 0},
	{"a member draws from the part of another rank", "optim/parts.go", "own := e.parts[e.Roster.Rank(m)]",
		"own := e.parts[0*e.Roster.Rank(m)]",
		"./optim", "^TestDeal$", 0},
	{"verify loses the edits of a grant", "runtime/verify/verify.go", "if e.At < g.To {", "if e.At < g.From {",
		"./runtime/verify", "^TestAgrees$", 0},
}

// TestMutants injects each mutant with an overlay and runs the test that must fail. If a seed no longer detects its
// mutant, since the drawn runs have changed, the test searches and logs another. Each mutant takes a build, so the test
// needs BROOD_LONG=conformance.
func TestMutants(t *testing.T) {
	longtest.Need(t, longtest.Conformance, "a build and a test run each")
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			overlay := m.plant(t, root)
			out, caught := m.test(t, root, overlay, m.seed)
			if !caught && (m.run == sim || m.run == fuzz) {
				out, caught = m.test(t, root, overlay, 0)
				t.Logf("seed %d no longer detects it", m.seed)
			}
			switch {
			case caught && m.run == sim, caught && m.run == fuzz:
				t.Logf("detected by seed %s", seedOf(out))
			case !caught:
				t.Errorf("%s: %q is not detected: %s passes in %s\n%s", m.file, m.new, m.run, m.pkg, out)
			}
		})
	}
}

// TestMutantsFollow checks that each mutant still matches exactly one place and that its tests exist, which is cheap
// enough for every run.
func TestMutantsFollow(t *testing.T) {
	for _, m := range mutants {
		src, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(m.file)))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(src), m.old); n != 1 {
			t.Errorf("%s has %q %d times, want once: update the mutant", m.file, m.old, n)
		}
		if err := longtest.CheckTests(filepath.Join("..", "..", m.pkg), m.run); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
}

// plant writes the mutated file and an overlay that replaces the original.
func (m mutant) plant(t *testing.T, root string) string {
	t.Helper()
	path, dir := filepath.Join(root, filepath.FromSlash(m.file)), t.TempDir()
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(src), m.old); n != 1 {
		t.Fatalf("%s has %q %d times, want once: update the mutant", m.file, m.old, n)
	}
	wrong := filepath.Join(dir, "wrong.go")
	if err := os.WriteFile(wrong, []byte(strings.Replace(string(src), m.old, m.new, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	spec, err := json.Marshal(map[string]any{"Replace": map[string]string{path: wrong}})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, spec, 0o600); err != nil {
		t.Fatal(err)
	}
	return overlay
}

// test runs the mutant's test. Seed 0 runs the first seeds instead of one. A test that hangs has detected it too.
func (m mutant) test(t *testing.T, root, overlay string, seed int) (out string, caught bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "test", "-v", "-count=1", "-timeout=90s", "-overlay="+overlay,
		"-run="+m.run, m.pkg)
	cmd.Dir = root
	cmd.Env = slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "BROOD_") })
	switch {
	case seed > 0:
		cmd.Env = append(cmd.Env, fmt.Sprintf("BROOD_SIM_SEED=%d", seed), fmt.Sprintf("BROOD_FUZZ_SEED=%d", seed))
	case m.run == sim:
		cmd.Env = append(cmd.Env, "BROOD_SIM_RUNS=10000")
	case m.run == fuzz:
		cmd.Env = append(cmd.Env, "BROOD_FUZZ_RUNS=40")
	}
	p, err := cmd.CombinedOutput()
	out = string(p)
	if strings.Contains(out, "[build failed]") || strings.Contains(out, "[setup failed]") {
		t.Fatalf("the mutant does not build:\n%s", out)
	}
	if err == nil && strings.Contains(out, "--- SKIP") {
		t.Errorf("%s is skipped, so that it cannot detect the mutant", m.run)
	}
	return out, err != nil
}

// seedOf returns the first seed in the output of a failing run.
func seedOf(out string) string {
	_, rest, ok := strings.Cut(out, "seed ")
	if !ok {
		return "none"
	}
	n, _, _ := strings.Cut(rest, ":")
	return n
}
