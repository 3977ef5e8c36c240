package host_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"

	"brood/models/longtest"
	"brood/models/program"
	"brood/models/program/programtest"
	"brood/optim"
	"brood/optim/catalog"
	"brood/runtime/checkpoint"
	"brood/runtime/evaluate"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/session"
)

// openProgram starts the test program with the given faults, see [programtest.Main].
func openProgram(t *testing.T, faults string) *host.Own {
	t.Helper()
	if goruntime.GOOS == "windows" {
		t.Skip("programs that compute gradients need shared memory, which this system does not have")
	}
	t.Setenv(programtest.Variable, faults)
	p, err := program.Open(t.Context(), programtest.Command(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return &host.Own{Program: p}
}

// runProgram trains in dir and returns the hash of the last round and the records.
func runProgram(own *host.Own, dir string, o host.Options) (hash string, records []event.Record, err error) {
	o.Own = own
	job, err := host.Prepare(o)
	if err != nil {
		return "", nil, err
	}
	s, err := session.Create(dir)
	if err != nil {
		return "", nil, err
	}
	return finish(job, s, nil)
}

func finish(job *host.Job, s *session.Session, from *host.Restored) (hash string, records []event.Record, err error) {
	run, err := host.Start(job, s, from, func(rec event.Record) {
		records = append(records, rec)
		if rec.Commit != nil {
			hash = rec.Commit.Hash
		}
	})
	if err != nil {
		return "", nil, err
	}
	_, err = run.Train(context.Background())
	return hash, records, errors.Join(err, run.Close())
}

// TestProgramAlgorithms: a program trains under every algorithm, in the default tests under one of each kind. One and
// two workers end with the same hash, the coordinator finds the predicted bytes, and the session verifies.
func TestProgramAlgorithms(t *testing.T) {
	kinds := []string{"parle", "diloco", "popsgd", "openai-es"}
	for _, a := range catalog.All() {
		if !a.Needs.Model() || a.Needs&optim.Whole != 0 ||
			!longtest.On(longtest.Conformance) && !slices.Contains(kinds, a.Name) {
			continue
		}
		t.Run(a.Name, func(t *testing.T) {
			own := openProgram(t, "")
			dir, want := t.TempDir(), ""
			for _, workers := range []int{1, 2} {
				at := filepath.Join(dir, a.Name+string(rune('0'+workers)))
				hash, _, err := runProgram(own, at, host.Options{Algorithm: a.Name, Members: 4, Workers: workers, Threads: 2,
					Seed: 3, Limit: event.Limit{Rounds: 3}})
				if err != nil {
					t.Fatal(err)
				}
				if want == "" {
					want = hash
				}
				if hash != want {
					t.Errorf("%d workers: state %s, want %s", workers, hash, want)
				}
			}
			res, err := own.Verify(t.Context(), filepath.Join(dir, a.Name+"2"), 1, nil)
			if err != nil || res.Last.Hash != want {
				t.Errorf("verified %+v: %v", res.Last, err)
			}
		})
	}
}

// TestProgramSteps: a program that takes the optimiser steps itself, with brood's rounding, ends with the same state as
// a program that returns gradients: the random streams, the moments and the rounding are the same.
func TestProgramSteps(t *testing.T) {
	for _, x := range []struct {
		algorithm string
		set       []event.Setting
	}{
		{"popsgd", nil},
		{"localsgd", []event.Setting{{Knob: "h", Expr: "5"}}},
		{"diloco", []event.Setting{{Knob: "optimiser", Expr: "sgd"}, {Knob: "eta_in", Expr: "0.05"}, {Knob: "h", Expr: "40"}}},
		{"streaming-diloco", []event.Setting{{Knob: "optimiser", Expr: "sgd"}, {Knob: "eta_in", Expr: "0.05"}}},
		{"pbt", nil},
		{"parle", nil},
		{"parle", []event.Setting{{Knob: "ell", Expr: "30"}, {Knob: "slice", Expr: "7"}, {Knob: "variant", Expr: "paper"}}},
		{"parle", []event.Setting{{Knob: "variant", Expr: "code"}, {Knob: "eta", Expr: "0.02"}}},
	} {
		t.Run(x.algorithm, func(t *testing.T) {
			o := host.Options{Algorithm: x.algorithm, Members: 3, Threads: 2, Seed: 3, Limit: event.Limit{Rounds: 4}, Set: x.set}
			want, _, err := runProgram(openProgram(t, ""), filepath.Join(t.TempDir(), "gradients"), o)
			if err != nil {
				t.Fatal(err)
			}
			own, dir := openProgram(t, "steps"), filepath.Join(t.TempDir(), "steps")
			got, _, err := runProgram(own, dir, o)
			if err != nil || got != want {
				t.Errorf("by steps: state %s, want %s: %v", got, want, err)
			}
			if res, err := own.Verify(t.Context(), dir, 1, nil); err != nil || res.Last.Hash != want {
				t.Errorf("verified %+v: %v", res.Last, err)
			}
		})
	}
}

// TestProgramOptimiser: a program's own optimiser trains under the methods of local steps. Its state moves with its
// member: one and two workers, and an execution again, end with the same hash. An optimiser that is SGD has the losses
// of brood's own.
func TestProgramOptimiser(t *testing.T) {
	sgd := []event.Setting{{Knob: "optimiser", Expr: "sgd"}}
	for _, x := range []struct {
		algorithm, eta, momentum string
		more                     []event.Setting
	}{
		{"diloco", "eta_in", "momentum_in", []event.Setting{{Knob: "h", Expr: "5"}, {Knob: "clip", Expr: "1"}}},
		{"parle", "eta", "momentum", nil},
		{"pbt", "eta", "momentum", []event.Setting{{Knob: "period", Expr: "0.5"}, {Knob: "slice", Expr: "2"}}},
		{"popsgd", "eta", "momentum", nil},
		{"localsgd", "eta", "momentum", nil},
		{"noloco", "eta_in", "momentum_in", nil},
		{"sparseloco", "eta_in", "momentum_in", nil},
		{"streaming-diloco", "eta_in", "momentum_in", nil},
		{"decoupled-diloco", "eta_in", "momentum_in", nil},
		{"papa", "eta", "momentum", nil},
		{"fedavg", "eta", "momentum", nil},
		{"d-psgd", "eta", "momentum", nil},
		{"wash", "eta", "momentum", nil},
		{"sparta", "eta", "momentum", nil},
		{"sgp", "eta", "momentum", nil},
		{"pb2", "eta", "momentum", []event.Setting{{Knob: "period", Expr: "0.5"}}},
		{"pesgd", "eta", "momentum", []event.Setting{{Knob: "period", Expr: "0.5"}}},
	} {
		if !longtest.On(longtest.Conformance) && !slices.Contains([]string{"diloco", "parle", "pbt"}, x.algorithm) {
			continue
		}
		t.Run(x.algorithm, func(t *testing.T) {
			o := host.Options{Algorithm: x.algorithm, Members: 4, Threads: 2, Seed: 3, Limit: event.Limit{Rounds: 4},
				Set: append(x.more, event.Setting{Knob: x.eta, Expr: "0.05"}, event.Setting{Knob: x.momentum, Expr: "0.8"})}
			own, dir := openProgram(t, "steps state"), t.TempDir()
			want, records, err := runProgram(own, filepath.Join(dir, "one"), o)
			if err != nil {
				t.Fatal(err)
			}
			two := o
			two.Workers = 2
			if got, _, err := runProgram(own, filepath.Join(dir, "two"), two); err != nil || got != want {
				t.Errorf("2 workers: state %s, want %s: %v", got, want, err)
			}
			if res, err := own.Verify(t.Context(), filepath.Join(dir, "two"), 1, nil); err != nil || res.Last.Hash != want {
				t.Errorf("verified %+v: %v", res.Last, err)
			}
			o.Set = append(o.Set, sgd...)
			_, brood, err := runProgram(own, filepath.Join(dir, "sgd"), o)
			if err != nil {
				t.Fatal(err)
			}
			switch got, want := losses(records), losses(brood); {
			case x.algorithm == "pbt" || x.algorithm == "pb2": // a replaced member has the source's state
				if !inherits(t, filepath.Join(dir, "one"), records) {
					t.Error("no replaced member has the state of its source")
				}
			case len(got) == 0 || !slices.Equal(got, want):
				t.Errorf("losses %v, and of brood's own steps %v", got, want)
			}
		})
	}
}

// TestProgramAhead: the batches that gradients announce are those that later ones take, and results do not depend on
// announcements.
func TestProgramAhead(t *testing.T) {
	for algorithm, rounds := range map[string]uint64{"dp-sgd": 60, "parle": 3, "localsgd": 10, "easgd": 40} {
		t.Run(algorithm, func(t *testing.T) {
			o := host.Options{Algorithm: algorithm, Members: 3, Threads: 2, Seed: 3, Limit: event.Limit{Rounds: rounds},
				Unattended: true}
			want, _, err := runProgram(openProgram(t, ""), filepath.Join(t.TempDir(), "s"), o)
			if err != nil {
				t.Fatal(err)
			}
			got, records, err := runProgram(openProgram(t, "ahead=4"), filepath.Join(t.TempDir(), "ahead"), o)
			if err != nil || got != want {
				t.Errorf("state %s, want %s: %v", got, want, err)
			}
			for _, r := range records {
				if r.Alert != nil {
					t.Error(r.Alert.Text)
				}
			}
		})
	}
}

// losses returns the training losses of all rounds.
func losses(records []event.Record) (out []float64) {
	for _, r := range records {
		if p := r.Points; p != nil && p.Series == "loss" {
			out = append(out, p.Values...)
		}
	}
	return out
}

// inherits reports whether two members of the last checkpoint have equal parameters, and equal states of a program's
// optimiser.
func inherits(t *testing.T, dir string, records []event.Record) bool {
	t.Helper()
	var last *event.Checkpoint
	for _, r := range records {
		last = cmp.Or(r.Checkpoint, last)
	}
	rows, err := (&checkpoint.Files{Dir: dir}).Load(*last, func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	for a := range 4 {
		for b := range a {
			x, y := rows[fmt.Sprint("x/", a)], rows[fmt.Sprint("x/", b)]
			if s := rows[fmt.Sprint("state/", a)].U; slices.Equal(x.F, y.F) {
				return s[0] != 0 && slices.Equal(s, rows[fmt.Sprint("state/", b)].U)
			}
		}
	}
	return false
}

// TestProgramResumes: a resumed run and a branch end with the hash of the whole run, and an exported model has the
// tensors by name.
func TestProgramResumes(t *testing.T) {
	for name, faults := range map[string]string{"gradients": "", "optimiser": "steps state"} {
		t.Run(name, func(t *testing.T) { testProgramResumes(t, openProgram(t, faults)) })
	}
}

func testProgramResumes(t *testing.T, own *host.Own) {
	dir := t.TempDir()
	o := host.Options{Algorithm: "diloco", Members: 2, Threads: 1, Seed: 3, Limit: event.Limit{Rounds: 6}}
	want, records, err := runProgram(own, filepath.Join(dir, "whole"), o)
	if err != nil {
		t.Fatal(err)
	}
	tested := false
	for _, r := range records {
		tested = tested || r.Evaluation != nil && r.Evaluation.TestError < 100
	}
	if !tested {
		t.Error("no evaluation has a test error")
	}
	o.Limit.Rounds = 2
	if _, _, err := runProgram(own, filepath.Join(dir, "part"), o); err != nil {
		t.Fatal(err)
	}
	s, err := session.Open(filepath.Join(dir, "part"))
	if err != nil {
		t.Fatal(err)
	}
	from, err := own.Restore(t.Context(), s.Dir(), 0, nil, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := from.Continue(host.Options{Limit: event.Limit{Rounds: 6}}); err != nil {
		t.Fatal(err)
	}
	if got, _, err := finish(from.Job, s, from); err != nil || got != want {
		t.Errorf("resumed: state %s, want %s: %v", got, want, err)
	}
	branch := filepath.Join(dir, "branch")
	if from, err = own.Restore(t.Context(), filepath.Join(dir, "part"), 2, &checkpoint.Files{Dir: branch}, 1,
		nil); err != nil {
		t.Fatal(err)
	}
	if err := from.Fork("part", host.Options{Threads: 1, Limit: event.Limit{Rounds: 6}}); err != nil {
		t.Fatal(err)
	}
	if s, err = session.Create(branch); err != nil {
		t.Fatal(err)
	}
	if got, _, err := finish(from.Job, s, from); err != nil || got != want {
		t.Errorf("forked: state %s, want %s: %v", got, want, err)
	}
	trained, err := evaluate.Export(t.Context(), own, filepath.Join(dir, "whole"), 0, 1, func(event.Commit) {})
	if err != nil || len(trained.Params) != programtest.Params || trained.Net.Layout.Tensors[2].Name != "fc2.weight" {
		t.Fatalf("exported %+v: %v", trained, err)
	}
	loss, _, _ := programtest.Evaluate(trained.Params, []int{1, 2, 3, 4})
	if loss/4 > 1 {
		t.Errorf("the exported model has a loss of %g", loss/4)
	}
}

// TestProgramRefused: options that a program does not support are rejected, and a session rejects another program.
func TestProgramRefused(t *testing.T) {
	own := openProgram(t, "")
	for _, x := range []struct {
		o    host.Options
		want string
	}{
		{host.Options{Algorithm: "dp-sgd", Data: "mnist"}, "data = mnist: the program has its own model and data"},
		{host.Options{Algorithm: "egg"}, "moves weights that are whole numbers"},
		{host.Options{Algorithm: "dp-sgd", Limit: event.Limit{Target: "test_rmse=1"}}, "target test_rmse"},
	} {
		x.o.Own = own
		if _, err := host.Prepare(x.o); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%+v: the error is %v, want %q", x.o, err, x.want)
		}
	}
	dir := filepath.Join(t.TempDir(), "s")
	if _, _, err := runProgram(own, dir, host.Options{Algorithm: "dp-sgd", Limit: event.Limit{Rounds: 1}}); err != nil {
		t.Fatal(err)
	}
	if _, err := (*host.Own)(nil).Verify(t.Context(), dir, 1, nil); err == nil ||
		!strings.Contains(err.Error(), "which no session starts by itself") {
		t.Errorf("verified without the program: %v", err)
	}
	file := filepath.Join(t.TempDir(), "there")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	other := openProgram(t, "other="+file)
	if _, err := other.Verify(t.Context(), dir, 1, nil); err == nil || !strings.Contains(err.Error(), "train = 601") {
		t.Errorf("verified with another program: %v", err)
	}
}

// TestProgramFails: a program that fails during training is a failure of its worker. The alert has the program's last
// output, and the worker is restarted.
func TestProgramFails(t *testing.T) {
	own := openProgram(t, "die=30 once="+filepath.Join(t.TempDir(), "died"))
	dir := filepath.Join(t.TempDir(), "s")
	_, records, err := runProgram(own, dir, host.Options{Algorithm: "dp-sgd", Members: 1, Threads: 1, Seed: 1,
		Limit: event.Limit{Rounds: 40}, Unattended: true})
	if err != nil {
		t.Fatal(err)
	}
	alerts := ""
	for _, r := range records {
		if r.Alert != nil {
			alerts += r.Alert.Text + "\n"
		}
	}
	if !strings.Contains(alerts, "stderr: ValueError: the tensors do not match") {
		t.Errorf("the alerts are %q", alerts)
	}
}

// TestVerifyWithin: a session of a program whose gradients vary does not verify by hashes. Its parameters verify within
// a share of their distance from the start, also after convergence and a change of members. A program that does not
// vary has error 0.
func TestVerifyWithin(t *testing.T) {
	for _, x := range []struct {
		faults, algorithm string
		rounds            uint64
		grows             bool
	}{
		{"", "popsgd", 40, false},
		{"wander", "parle", 60, true},
	} {
		own, dir := openProgram(t, x.faults), filepath.Join(t.TempDir(), "s")
		saveOften(t, own, dir, host.Options{Algorithm: x.algorithm, Members: 2, Threads: 1, Seed: 3,
			Limit: event.Limit{Rounds: x.rounds}, Set: []event.Setting{{Knob: "optimiser", Expr: "adamw"}}}, x.grows)
		varies := x.faults != ""
		res, err := own.VerifyWithin(t.Context(), dir, 1, .1, nil)
		if err != nil || res.Within.Segments < 3 || res.Rounds != x.rounds || (res.Within.LargestError > 0) != varies ||
			res.Within.Compared != x.rounds {
			t.Errorf("%+v: %+v: %v", x, res.Within, err)
		}
		if !varies {
			continue
		}
		if _, err := own.Verify(t.Context(), dir, 1, nil); err == nil ||
			!strings.Contains(err.Error(), "gives different results") {
			t.Errorf("verified by hashes: %v", err)
		}
		if _, err := own.VerifyWithin(t.Context(), dir, 1, 1e-9, nil); err == nil ||
			!strings.Contains(err.Error(), "and 1e-09 was allowed") {
			t.Errorf("verified within 1e-9: %v", err)
		}
	}
	dir := filepath.Join(t.TempDir(), "s")
	if _, _, err := runProgram(nil, dir, host.Options{Algorithm: "dp-sgd", Data: "glyphs", Model: "softmax", Members: 1,
		Limit: event.Limit{Rounds: 1}}); err != nil {
		t.Fatal(err)
	}
	if _, err := (*host.Own)(nil).VerifyWithin(t.Context(), dir, 1, .1, nil); err == nil ||
		!strings.Contains(err.Error(), "omit --within") {
		t.Errorf("a model of brood is verified within .1: %v", err)
	}
}

// saveOften trains in dir and saves after most commits; if it grows, the population has one more member in the middle.
func saveOften(t *testing.T, own *host.Own, dir string, o host.Options, grows bool) {
	t.Helper()
	o.Own = own
	job, err := host.Prepare(o)
	if err != nil {
		t.Fatal(err)
	}
	s, err := session.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan *host.Run, 1)
	run, err := host.Start(job, s, nil, func(rec event.Record) {
		if rec.Commit == nil || rec.Commit.To > o.Limit.Rounds*3/4 {
			return
		}
		command := event.Command{Action: event.Save}
		if grows && rec.Commit.To > o.Limit.Rounds/2 {
			command, grows = event.Command{Members: o.Members + 1}, false
		}
		go func() {
			r := <-started
			started <- r
			_, _ = r.Command(t.Context(), command)
		}()
	})
	if err != nil {
		t.Fatal(err)
	}
	started <- run
	_, err = run.Train(t.Context())
	if err := errors.Join(err, run.Close()); err != nil {
		t.Fatal(err)
	}
}
