package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"brood/runtime/archive"
	"brood/runtime/checkpoint"
	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/option"
	"brood/runtime/session"
	"brood/runtime/view"
)

// eventful trains in dir for at least 120 rounds and 20 saves, with edits, a command for later and another population,
// and stops before the end of the run. All checkpoints stay.
func eventful(t *testing.T, dir string) {
	o := tiny(4000)
	o.Evaluate, o.Probe, o.Limit.Patience = 7, 5, 3000
	o.Set = append(o.Set, event.Setting{Knob: "eta", Expr: "0.001"}) // so that the loss does not rise: states stay good
	kept := dir + "-kept"
	n, saved := 0, 0
	train(t, dir, prepare(t, o), nil, func(r *Run, rec event.Record) {
		send := func(c event.Command) { go func() { _, _ = r.Command(t.Context(), c) }() }
		if rec.Checkpoint != nil {
			saved++
			os.RemoveAll(filepath.Join(kept, fmt.Sprint(rec.Checkpoint.Round))) // of the epoch before
			copyCheckpoint(t, kept, dir, rec.Checkpoint.Round)
		}
		if rec.Commit == nil {
			return
		}
		send(event.Command{Action: event.Save})
		switch n++; {
		case n == 20:
			send(event.Command{Set: []event.Setting{{Knob: "gamma", Expr: "0.01@50r 0.02@3900r"}}})
		case n == 30:
			send(event.Command{Members: 3})
		case n%4 == 0 && rec.Commit.To < 90:
			send(event.Command{Set: []event.Setting{{Knob: "eta", Expr: fmt.Sprint(0.001 + float64(n)/1e6)}}})
		}
		if rec.Commit.To >= 120 && saved >= 20 {
			go r.Interrupt()
		}
	})
	if err := os.RemoveAll(filepath.Join(dir, session.CheckpointDir)); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, session.CheckpointDir), os.DirFS(kept)); err != nil {
		t.Fatal(err)
	}
}

// foldedView returns the view of the log in dir.
func foldedView(t *testing.T, dir string) (v *view.View) {
	t.Helper()
	r, err := session.OpenReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	v = view.New()
	if err := eachRecord(t.Context(), r, func(_ uint64, rec event.Record) { v.Apply(rec) }); err != nil {
		t.Fatal(err)
	}
	return v
}

// shortened copies the session in dir and shortens the copy to begin at c.
func shortened(t *testing.T, dir, to string, c *place) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	head, err := c.head(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	s, err := session.Open(to)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Shorten(c.n, head); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestShortenedLogs: wherever a log may begin, its readers conclude what they conclude from the whole one: the same
// view with all charts, the same state to continue from, and the same hashes. It verifies from there, and a fork of an
// earlier round is refused with the reason.
func TestShortenedLogs(t *testing.T) {
	home := t.TempDir()
	whole := filepath.Join(home, "whole")
	eventful(t, whole)
	places, _, _, err := findPlaces(t.Context(), whole)
	if err != nil || len(places) < 10 {
		t.Fatalf("%d places, %v", len(places), err)
	}
	want, err := read(whole, 0)
	if err != nil {
		t.Fatal(err)
	}
	verified, err := Verify(t.Context(), whole, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	v := foldedView(t, whole)
	tally, err := archive.ReadTally(whole)
	if err != nil {
		t.Fatal(err)
	}
	further := func(dir string) string {
		to := dir + "-further"
		if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		o := Options{By: "test", Limit: event.Limit{Rounds: verified.Last.To + 20}}
		return runOrder(t, Order{Dir: to, Resume: true, Options: o}, nil)
	}
	fork := func(dir string, at uint64) string {
		o := Options{By: "fork", Limit: event.Limit{Rounds: at + 20}}
		return runOrder(t, Order{Dir: dir + "-fork", From: dir, At: at, Options: o}, nil)
	}
	impatient := event.Limit{Patience: 1}
	at := places[len(places)-1].saved.Round + 1
	wantFurther, wantFork := further(whole), fork(whole, at)
	from := whole
	for i := range 4 { // the first log is made of the whole one, each other of the one before
		c := &places[(i+1)*(len(places)-1)/4]
		dir := filepath.Join(home, string(rune('1'+i)))
		shortened(t, from, dir, c)
		from = dir
		got, err := read(dir, 0)
		if err != nil {
			t.Fatalf("from round %d: %v", c.saved.Round, err)
		}
		if b := got.config.Begins; b == nil || b.Round != c.saved.Round || b.First+b.Head != c.n {
			t.Fatalf("from round %d: begins %+v, record %d", c.saved.Round, b, c.n)
		}
		for what, pair := range map[string][2]any{
			"records":    {got.count, want.count},
			"epoch":      {got.epoch, want.epoch},
			"last":       {got.last, want.last},
			"edits":      {got.edits, want.edits},
			"hosts":      {got.hosts, want.hosts},
			"pending":    {got.asked, want.asked},
			"limit":      {got.goal.Limit, want.goal.Limit},
			"stalled":    {got.goal.Losses.Stalled(impatient), want.goal.Losses.Stalled(impatient)},
			"best":       {got.goal.Losses.Best(), want.goal.Losses.Best()},
			"good":       {got.lastGood.Round, want.lastGood.Round},
			"good state": {got.lastGood.Good, want.lastGood.Good},
			"phase":      {got.phase, want.phase},
		} {
			if !reflect.DeepEqual(pair[0], pair[1]) {
				t.Errorf("from round %d: %s is %+v, of the whole log %+v", c.saved.Round, what, pair[0], pair[1])
			}
		}
		w := foldedView(t, dir)
		if w.Config.Begins == nil || w.Config.Begins.View != nil {
			t.Errorf("from round %d: the view has %+v", c.saved.Round, w.Config.Begins)
		}
		w.Config = v.Config
		a, _ := cbor.Marshal(w)
		b, _ := cbor.Marshal(v)
		if !bytes.Equal(a, b) {
			t.Errorf("from round %d: the view differs: %d series of %d, position %d of %d, %d events of %d", c.saved.Round,
				len(w.Series), len(v.Series), w.Position, v.Position, w.Events, v.Events)
		}
		other, err := archive.ReadTally(dir)
		if err != nil {
			t.Fatal(err)
		}
		if b := other.Config.Begins; b == nil || b.View != nil {
			t.Errorf("from round %d: the tally has the view", c.saved.Round)
		}
		for _, m := range archive.Metrics { // sums are those of the rounds that the log has
			a, _ := other.Metric(m.Name)
			if b, _ := tally.Metric(m.Name); a != b && strings.Contains(m.Name, "test") {
				t.Errorf("from round %d: %s is %g, of the whole log %g", c.saved.Round, m.Name, a, b)
			}
		}
		res, err := Verify(t.Context(), dir, 1, nil)
		if err != nil {
			t.Fatalf("from round %d: %v", c.saved.Round, err)
		}
		if res.Rounds != verified.Last.To-c.saved.Round || res.Last.Hash != verified.Last.Hash ||
			res.From != c.saved.Round || res.Unmatched > verified.Unmatched {
			t.Errorf("from round %d: %d rounds verified, %d records unmatched (of all %d)", c.saved.Round, res.Rounds,
				res.Unmatched, verified.Unmatched)
		}
		if got := further(dir); got != wantFurther {
			t.Errorf("from round %d: it continues to %s, the whole log to %s", c.saved.Round, got, wantFurther)
		}
		if got := fork(dir, at); got != wantFork {
			t.Errorf("from round %d: a fork ends as %s, of the whole log as %s", c.saved.Round, got, wantFork)
		}
		_, err = Restore(t.Context(), dir, c.saved.Round-1, nil, 1, nil)
		if err == nil || !strings.Contains(err.Error(), "the log begins after round") {
			t.Errorf("from round %d: an earlier round: %v", c.saved.Round, err)
		}
	}
}

// TestRunKeepsLog: a run with a limit of its log ends as one without; its log stays near the limit, says where it
// begins, verifies, and is shortened further when it is resumed.
func TestRunKeepsLog(t *testing.T) {
	home := t.TempDir()
	o := tiny(600)
	o.Set = append(o.Set, event.Setting{Knob: "eta", Expr: "0.001"})
	want := train(t, filepath.Join(home, "all"), prepare(t, o), nil, nil)
	all, _, _ := session.LogSize(filepath.Join(home, "all"))
	dir := filepath.Join(home, "some")
	if err := option.KeepLog.Set(&o, "1TB"); err != nil {
		t.Fatal(err)
	}
	saving := func(r *Run, rec event.Record) {
		if r.shorten.bytes > all { // a limit of the option is larger
			r.shorten.bytes = all / 4
		}
		if rec.Commit != nil && rec.Commit.To%3 == 0 {
			go func() { _, _ = r.Command(context.WithoutCancel(t.Context()), event.Command{Action: event.Save}) }()
		}
	}
	began := func() (round uint64) {
		r, err := session.OpenReader(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		rec, err := r.Next()
		if err != nil || rec.Config.More["keep-log"] != "1TB" {
			t.Fatal(rec.Config, err)
		}
		if b := rec.Config.Begins; b != nil {
			return b.Round
		}
		return 0
	}
	o.Limit.Rounds = 300
	train(t, dir, prepare(t, o), nil, saving)
	first := began()
	from, err := Restore(t.Context(), dir, 0, nil, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := from.Continue(Options{Limit: event.Limit{Rounds: 600}}); err != nil {
		t.Fatal(err)
	}
	got := train(t, dir, from.Job, from, saving)
	if got != want {
		t.Errorf("it ends as %s, with the whole log as %s", got, want)
	}
	if second := began(); first == 0 || second <= first {
		t.Errorf("the log began after round %d, and then after %d", first, second)
	}
	res, err := Verify(t.Context(), dir, 1, nil)
	if err != nil || res.Last.Hash != want {
		t.Error(err)
	}
	if h, err := read(dir, 0); err != nil || h.goal.Limit.Rounds != 600 {
		t.Errorf("the limit is %+v, %v", h.goal.Limit, err)
	}
	warnings := 0
	for _, e := range foldedView(t, dir).Lane {
		if e.Alert == event.AlertLog && strings.Contains(e.Text, "older records were removed") {
			warnings++
		}
	}
	if warnings == 0 {
		t.Error("no event says that records were removed")
	}
}

// TestLogThatCannotBeShortened: a run whose states are not good any more keeps its log, and warns once.
func TestLogThatCannotBeShortened(t *testing.T) {
	s, err := session.Create(filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var notes []coordinator.Note
	o := tiny(3)
	if err := option.KeepLog.Set(&o, "1MB"); err != nil {
		t.Fatal(err)
	}
	k := newShortening(o, s, func(n coordinator.Note) { notes = append(notes, n) })
	k.bytes = 1000
	record := func(loss float64) {
		random := make([]float64, 500) // that do not compress
		for i := range random {
			random[i] = rand.Float64()
		}
		points := event.Points{Series: event.SeriesCentre, Values: append([]float64{loss}, random...)}
		checkpoint := event.Record{Checkpoint: &event.Checkpoint{}}
		if err := s.Append(event.Record{Config: &event.Config{}}, event.Record{Points: &points}, checkpoint); err != nil {
			t.Fatal(err)
		}
		k.start(checkpoint)
		k.done.Wait()
	}
	for range 5 {
		record(1)
	}
	if len(notes) != 1 || notes[0].Level != event.LevelWarning || !strings.Contains(notes[0].Text, "last good state") {
		t.Errorf("it notes %+v", notes)
	}
}

// TestNeverGoodLog: a run without a good checkpoint would return to its start, so that its log has no place to begin.
// Without probes all checkpoints are good.
func TestNeverGoodLog(t *testing.T) {
	for _, c := range []struct {
		losses []float64
		want   int
	}{
		{[]float64{1, 2, 2, 2}, 0},
		{[]float64{math.Inf(1), 1, 2, 2}, 1},
		{[]float64{math.NaN(), math.NaN(), math.NaN(), math.NaN()}, 0},
		{nil, 3},
		{[]float64{math.Inf(1), 2, 2, 2}, 3},
	} {
		dir := filepath.Join(t.TempDir(), "s")
		s, err := session.Create(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		recs := []event.Record{{Config: &event.Config{}}, {Plan: &event.Plan{Epoch: 1}}}
		for i := range 4 {
			round := uint64(10 * (i + 1))
			if err := os.MkdirAll(filepath.Join(dir, session.CheckpointDir, fmt.Sprint(round)), 0o700); err != nil {
				t.Fatal(err)
			}
			recs = append(recs, event.Record{Commit: &event.Commit{To: round, Hash: "x"}})
			if c.losses != nil {
				probe := event.Points{Round: round - 1, Series: event.SeriesCentre, Values: c.losses[i : i+1]}
				recs = append(recs, event.Record{Points: &probe})
			}
			recs = append(recs, event.Record{Checkpoint: &event.Checkpoint{Round: round, Epoch: 1, Hash: "x"}})
		}
		if err := errors.Join(s.Append(recs...), s.Sync()); err != nil {
			t.Fatal(err)
		}
		places, _, _, err := findPlaces(t.Context(), dir)
		if err != nil || len(places) != c.want {
			t.Errorf("with losses %v it has %d places, %v; want %d", c.losses, len(places), err, c.want)
		}
		if len(places) < 3 || c.losses == nil {
			continue
		}
		head, err := places[2].head(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if p := head[1].Points; math.IsInf(c.losses[0], 0) && (p == nil || p.Values[0] != 2) {
			t.Errorf("with losses %v it begins with %+v", c.losses, head[1])
		}
	}
}

// TestLateCheckpoints: a save may end after later rounds were committed, and after the save before it.
func TestLateCheckpoints(t *testing.T) {
	s, err := session.Create(filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	commit := func(to uint64) event.Record { return event.Record{Commit: &event.Commit{To: to, Hash: "x"}} }
	save := func(round uint64) event.Record {
		return event.Record{Checkpoint: &event.Checkpoint{Round: round, Epoch: 1, Hash: "x"}}
	}
	recs := []event.Record{{Config: &event.Config{}}, {Plan: &event.Plan{Epoch: 1}},
		commit(1), commit(2), save(1), commit(3), save(2), save(2), commit(4), save(3), commit(5)}
	for _, round := range []string{"1", "2", "3"} {
		if err := os.MkdirAll(filepath.Join(s.Dir(), session.CheckpointDir, round), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(s.Append(recs...), s.Sync()); err != nil {
		t.Fatal(err)
	}
	places, _, _, err := findPlaces(t.Context(), s.Dir())
	var rounds []uint64
	for _, p := range places {
		rounds = append(rounds, p.saved.Round)
	}
	if err != nil || !slices.Equal(rounds, []uint64{1, 2, 3}) {
		t.Errorf("its places are after rounds %v, %v; want 1, 2, 3", rounds, err)
	}
}

// TestLastingTests: evaluations without a number are not the best ones.
func TestLastingTests(t *testing.T) {
	var tests []event.Record
	for i, loss := range []float64{math.NaN(), 3, 1, 2, 4} {
		e := event.Evaluation{Round: uint64(i), TestError: loss, TestLoss: loss}
		e.Validation = &event.Scores{Loss: loss}
		tests = append(tests, event.Record{Evaluation: &e})
	}
	out := lastingTests(&event.Config{}, tests, 0)
	if len(out) != 2 || out[0].Evaluation.Round != 2 || out[1].Evaluation.Round != 4 {
		t.Errorf("it retains %+v", out)
	}
}

// TestPinnedCheckpoints: while an attempt moves the beginning of a log, which a kill may end at any time, the files of
// the old and of the new beginning stay. Those of the old one stay after an attempt that failed.
func TestPinnedCheckpoints(t *testing.T) {
	s, err := session.Create(filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r := &Run{Session: s, retained: checkpoint.NewRetention(option.Options{}), shorten: newShortening(Options{}, s, nil)}
	cps := map[uint64]*event.Checkpoint{}
	save := func(round uint64) {
		rel := session.CheckpointFile(round, 1, 0)
		path := filepath.Join(s.Dir(), filepath.FromSlash(rel))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("x"), 0o644)); err != nil {
			t.Fatal(err)
		}
		cps[round] = &event.Checkpoint{Round: round, Files: []event.File{{Path: rel, Bytes: 1}}}
		r.prune(event.Record{Commit: &event.Commit{To: round}})
		r.prune(event.Record{Checkpoint: cps[round]})
	}
	want := func(what string, stay ...uint64) {
		t.Helper()
		there, err := session.Checkpoints(s.Dir())
		if err != nil {
			t.Fatal(err)
		}
		for _, round := range []uint64{4, 7, 9} {
			if slices.Contains(stay, round) != slices.Contains(there, round) {
				t.Errorf("%s: the files of rounds %v exist; want of 4, 7 and 9 those of %v", what, there, stay)
			}
		}
	}
	save(4)
	r.prune(event.Record{Plan: &event.Plan{At: 4, From: event.Saved}}) // the log of a resumed run begins with it
	save(7)
	r.shorten.pin(cps[7])
	for round := uint64(100); round < 200; round++ {
		save(round)
	}
	want("during an attempt", 4, 7)
	r.shorten.unpin(false)
	save(200)
	want("after it failed", 4)
	save(201)
	r.shorten.pin(cps[200])
	r.shorten.unpin(true)
	save(202)
	want("after another one")
	if there, _ := session.Checkpoints(s.Dir()); !slices.Contains(there, 200) {
		t.Errorf("the files of the beginning are gone: %v", there)
	}
}

func TestKeepLogOption(t *testing.T) {
	for text, want := range map[string]string{"2GB": "", "1MB": "", "7d": "", "90m": "", "5kB": "1MB or more",
		"2": "such as 2GB", "-1h": "such as 2GB", "xGB": "1MB or more", "many": "such as 2GB",
		"1m": "", "7ms": "1m to 10000d", "59s": "1m to 10000d", "10000d": "", "30000d": "1m to 10000d"} {
		o := tiny(3)
		if err := option.KeepLog.Set(&o, text); err != nil {
			t.Fatal(err)
		}
		err := o.Check()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestPlaces: a log does not begin at a checkpoint that a later plan took back, without files, newer than the last good
// one, or without a commit after it.
func TestPlaces(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	s, err := session.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	hash := func(round uint64) string { return fmt.Sprint("hash ", round) }
	add := func(recs ...event.Record) {
		if err := errors.Join(s.Append(recs...), s.Sync()); err != nil {
			t.Fatal(err)
		}
	}
	saved := func(round uint64, epoch uint32) event.Record {
		return event.Record{Checkpoint: &event.Checkpoint{Round: round, Epoch: epoch, Hash: hash(round)}}
	}
	commit := func(round uint64) event.Record {
		return event.Record{Commit: &event.Commit{To: round, Hash: hash(round)}}
	}
	probe := func(round uint64, loss float64) event.Record {
		return event.Record{Points: &event.Points{Round: round, Series: event.SeriesCentre, Values: []float64{loss}}}
	}
	plan := func(epoch uint32, at uint64) event.Record {
		return event.Record{Plan: &event.Plan{Epoch: epoch, At: at}}
	}
	add(event.Record{Config: &event.Config{}}, plan(1, 0))
	for round := uint64(10); round <= 90; round += 10 {
		if round != 30 {
			if err := os.MkdirAll(filepath.Join(dir, session.CheckpointDir, fmt.Sprint(round)), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		loss := 1.0
		if round > 70 {
			loss = 2
		}
		add(commit(round), probe(round, loss))
		cp := saved(round, 1+uint32(round)/50) // while the next round is executed
		if round == 60 {
			add(event.Record{Edit: &event.Edit{At: 61, Knob: "eta"}})
			cp.Checkpoint.Timeline = []event.Edit{{At: 1, Knob: "eta"}, {At: 61, Knob: "eta"}}
		}
		add(commit(round+1), cp)
		if round == 40 {
			add(plan(2, 20), commit(50))
		}
	}
	rounds := func() (out []uint64) {
		places, _, _, err := findPlaces(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range places {
			out = append(out, c.saved.Round)
		}
		return out
	}
	if got := rounds(); !slices.Equal(got, []uint64{10, 20, 50, 60, 70}) {
		t.Errorf("the log may begin after rounds %v", got)
	}
	places, _, _, err := findPlaces(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	head, err := places[3].head(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	last := head[len(head)-1].Plan
	if len(head) != 5 || head[1].Points == nil || head[1].Points.Round != 10 || head[2].State == nil ||
		head[3].Checkpoint == nil || last == nil || len(last.Timeline) != 1 || last.Timeline[0].At != 1 {
		t.Errorf("a log after round 60 begins with %+v", head) // with the first probe, and without the edit that stays
	}
	add(probe(91, 0.5))
	if got := rounds(); !slices.Equal(got, []uint64{10, 20, 50, 60, 70, 80, 90}) {
		t.Errorf("with a good state at the end, after rounds %v", got)
	}
	add(saved(91, 2))
	if got := rounds(); slices.Contains(got, 91) {
		t.Errorf("it may begin at its end: %v", got)
	}
}
