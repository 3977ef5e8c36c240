package tui

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"brood/runtime/event"
	"brood/runtime/testutil"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
	"brood/tui/panel"
	"brood/tui/replay"
	"brood/tui/textfmt"
)

// memoryLog is a log in memory; reads counts the records that were read.
type memoryLog struct {
	rs    []event.Record
	at    uint64
	reads int
}

func (l *memoryLog) Next() (event.Record, error) {
	if l.at >= uint64(len(l.rs)) {
		return event.Record{}, io.EOF
	}
	l.at++
	l.reads++
	return l.rs[l.at-1], nil
}

func (l *memoryLog) Seek(n uint64) error {
	if n > uint64(len(l.rs)) {
		return errors.New("beyond the end")
	}
	l.at = n
	return nil
}

// fastReplay returns a replay whose clock jumps, so that it never waits.
func fastReplay(l replay.Log) *replay.Replay {
	r := replay.NewReplay(l)
	var ticks time.Duration
	r.Clock = func() time.Time { ticks += time.Hour; return time.Unix(1e9, 0).Add(ticks) }
	return r
}

func TestMemorySatisfiesSource(t *testing.T) {
	rs := sourcetest.Gossip(3, 40)
	m := sourcetest.NewMemory(rs...)
	sourcetest.Contract(t, m, rs, false)
	m.Close()
	sourcetest.Contract(t, m, rs, true)
}

func TestReplaySatisfiesSource(t *testing.T) {
	rs := sourcetest.Gossip(3, 40)
	sourcetest.Contract(t, fastReplay(&memoryLog{rs: rs}), rs, true)
	scanned := fastReplay(&memoryLog{rs: rs})
	if err := scanned.Scan(context.Background()); err != nil {
		t.Fatal(err)
	}
	sourcetest.Contract(t, scanned, rs, true)
}

// TestReplayPaces checks that a frame has the records of a thirtieth of a second times the speed.
func TestReplayPaces(t *testing.T) {
	var rs []event.Record
	for i := range 300 {
		rs = append(rs, event.Record{At: 1e18 + int64(i)*10e6, State: &event.State{Round: uint64(i)}})
	}
	r := fastReplay(&memoryLog{rs: rs})
	for _, c := range []struct {
		speed float64
		want  int
	}{{1, 4}, {3, 10}, {0.1, 1}} {
		r.SetSpeed(c.speed)
		b, err := r.Next(testutil.Context(t), 7, 1000)
		if err != nil || len(b.Records) != c.want || b.Records[0].State.Round != 7 {
			t.Errorf("at speed %g a frame has %d records, %v; want %d", c.speed, len(b.Records), err, c.want)
		}
	}
	now := time.Unix(1e9, 0)
	r.Clock = func() time.Time { return now }
	r.SetSpeed(2)
	b, _ := r.Next(testutil.Context(t), 0, 1)
	if wait, _ := r.Wait(b.Next, rs[50].At); wait != 250*time.Millisecond {
		t.Errorf("half a second at speed 2 takes %v", wait)
	}
	if wait, _ := r.Wait(b.Next, rs[0].At+int64(time.Hour)); wait != 500*time.Millisecond {
		t.Errorf("an hour of silence takes %v, want a second of it", wait)
	}
	if cut, ok := r.Cut(); !ok || cut != time.Hour {
		t.Errorf("of the hour it says %v, %v", cut, ok)
	}
	now = now.Add(replay.CutShown + time.Second)
	if cut, ok := r.Cut(); ok {
		t.Errorf("later it still says that %v were cut", cut)
	}
	if wait, _ := r.Wait(b.Next+9, rs[50].At); wait != 0 {
		t.Errorf("after a seek it waits %v", wait)
	}
}

// TestReplayReportsShortenedPauses checks that the line of the replay reports a shortened pause, and only such a one.
func TestReplayReportsShortenedPauses(t *testing.T) {
	rs := sourcetest.Run(2, 40)
	for i := len(rs) / 2; i < len(rs); i++ {
		rs[i].At += int64(75 * time.Minute)
	}
	r := replay.NewReplay(&memoryLog{rs: rs})
	now := time.Unix(1e9, 0)
	r.Clock = func() time.Time { now = now.Add(time.Second); return now }
	d := open(t, 80, 24, nil, func(o *panel.Options) { o.Source, o.Commander = r, nil })
	for at := view.Position(0); int(at) < len(rs); at++ {
		b, err := r.Next(testutil.Context(t), at, 1)
		if err != nil {
			t.Fatal(err)
		}
		d.Update(batchMsg{gen: d.Feed.Gen, batch: b})
		switch text := d.screenText(); {
		case int(at) < len(rs)/2 && strings.Contains(text, "shortened"):
			t.Fatalf("record %d: a pause was cut that was none", at)
		case int(at) == len(rs)/2:
			d.shows("1h 15m", "shortened")
		}
	}
	d.hides("shortened")
}

func TestReplayPauses(t *testing.T) {
	r := fastReplay(&memoryLog{rs: sourcetest.Run(2, 10)})
	r.Pause(true)
	ctx, cancel := context.WithCancel(context.Background())
	got := make(chan error, 1)
	go func() { _, err := r.Next(ctx, 0, 1); got <- err }()
	cancel()
	if err := testutil.Receive(t, got, "answer of the replay"); !errors.Is(err, context.Canceled) {
		t.Fatalf("a paused replay hands on a record: %v", err)
	}
	go func() { _, err := r.Next(testutil.Context(t), 0, 1); got <- err }()
	r.Pause(false)
	if err := testutil.Receive(t, got, "answer of the replay"); err != nil {
		t.Errorf("going on: %v", err)
	}
}

// viewAt returns the view of a replay of rs at a round.
func viewAt(t *testing.T, rs []event.Record, round uint64) *view.View {
	t.Helper()
	r := fastReplay(&memoryLog{rs: rs})
	at, err := r.Round(context.Background(), round)
	if err != nil {
		t.Fatal(err)
	}
	v, err := r.Snapshot(testutil.Context(t), at)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestReplayPositionIncludesEvaluation checks that a position at a round includes its evaluation, which is recorded
// after its commit: also for the last round, and before the whole recording was scanned.
func TestReplayPositionIncludesEvaluation(t *testing.T) {
	rs := sourcetest.Run(2, 400)
	for _, round := range []uint64{200, 400} {
		v := viewAt(t, rs, round)
		tested := slices.ContainsFunc(rs, func(x event.Record) bool {
			return x.Evaluation != nil &&
				x.Evaluation.Round == round
		})
		if v.Progress.Rounds != round || tested && (v.Evaluation == nil || v.Evaluation.Round != round) {
			t.Errorf("at round %d: %d rounds are done, and the score is %+v", round, v.Progress.Rounds, v.Evaluation)
		}
		if round == 200 && !tested {
			t.Fatal("round 200 was not tested")
		}
	}
}

// TestReplayPositionIncludesPoints checks that a position at a round includes the points of its rounds, which a run
// records after the commit.
func TestReplayPositionIncludesPoints(t *testing.T) {
	var rs, block []event.Record
	for _, r := range sourcetest.Run(2, 400) { // each commit before the points since the one before
		if block = append(block, r); r.Commit != nil {
			rs, block = append(append(rs, r), block[:len(block)-1]...), nil
		}
	}
	for _, round := range []uint64{200, 400} {
		v := viewAt(t, rs, round)
		i := slices.IndexFunc(rs, func(x event.Record) bool {
			return x.Points != nil && x.Points.Series == "loss" && x.Points.Round == round
		})
		if x, _ := v.Find("loss").Last(0); v.Progress.Rounds != round || x != rs[i].Points.Values[0] {
			t.Errorf("at round %d: %d rounds are done, the loss is %g, want %g", round, v.Progress.Rounds, x,
				rs[i].Points.Values[0])
		}
	}
}

func TestReplayFindsRounds(t *testing.T) {
	rs := sourcetest.Run(2, 400)
	r := fastReplay(&memoryLog{rs: rs})
	at, err := r.Round(context.Background(), 101)
	if err != nil {
		t.Fatal(err)
	}
	v, _ := r.Snapshot(testutil.Context(t), at)
	if v.Progress.Rounds != 104 {
		t.Errorf("round 101 is found where %d rounds are done, want the commit at 104", v.Progress.Rounds)
	}
	if err := r.Scan(context.Background()); err != nil {
		t.Fatal(err)
	}
	if e := r.Extent(); !e.Whole || e.Records != uint64(len(rs)) || e.Rounds != 400 {
		t.Errorf("extent %+v", e)
	}
	next := r.Step(at, 1)
	if w, _ := r.Snapshot(testutil.Context(t), next); w.Progress.Rounds != 108 {
		t.Errorf("the next commit is at %d rounds", w.Progress.Rounds)
	}
	if back := r.Step(next, -1); back != at {
		t.Errorf("forth and back leads from %d to %d", at, back)
	}
	if end := r.Step(uint64(len(rs)), 1); end != uint64(len(rs)) {
		t.Errorf("after the last commit: %d", end)
	}
}

// TestReplayFindsRoundsAfterARollback checks that a round that was recomputed is found where it was first reached, and
// that a position has the round of its own commit.
func TestReplayFindsRoundsAfterARollback(t *testing.T) {
	var rs []event.Record
	for _, to := range []uint64{4, 8, 12, 8, 12, 16, 20} {
		if len(rs) == 3 {
			rs = append(rs, event.Record{Plan: &event.Plan{At: 4, From: event.Saved}})
		}
		rs = append(rs, event.Record{Commit: &event.Commit{To: to, Rounds: 4, Progress: event.Progress{Rounds: to}}})
	}
	r := fastReplay(&memoryLog{rs: rs})
	if err := r.Scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	for round, want := range map[uint64]view.Position{0: 0, 5: 2, 12: 3, 13: 7, 20: 8, 21: 8} {
		if got := r.Known(round); got != want {
			t.Errorf("round %d is found at position %d, want %d", round, got, want)
		}
	}
	for at, want := range []uint64{0, 4, 8, 12, 12, 8, 12, 16, 20} {
		if got := r.RoundAt(view.Position(at)); got != want {
			t.Errorf("position %d is of round %d, want %d", at, got, want)
		}
	}
}

// TestSeeksAreShort checks that a seek in a scanned recording folds a bounded number of records.
func TestSeeksAreShort(t *testing.T) {
	var rs []event.Record
	for i := range 5 * replay.KeyEvery {
		rs = append(rs, event.Record{At: 1e18, State: &event.State{Round: uint64(i)}})
	}
	l := &memoryLog{rs: rs}
	r := fastReplay(l)
	if err := r.Scan(context.Background()); err != nil {
		t.Fatal(err)
	}
	l.reads = 0
	if v, err := r.Snapshot(testutil.Context(t), 4*replay.KeyEvery+10); err != nil ||
		v.Position != 4*replay.KeyEvery+10 || l.reads > replay.KeyEvery {
		t.Errorf("position %v, %v, %d records read", v.Position, err, l.reads)
	}
}

type keyed struct {
	memoryLog
	frames map[uint64][]byte
}

func (k *keyed) Keyframe(before uint64) (uint64, []byte, bool, error) {
	best := uint64(0)
	for n := range k.frames {
		if n <= before {
			best = max(best, n)
		}
	}
	return best, k.frames[best], best > 0, nil
}

func TestSavedKeyframesShortenTheFirstSeek(t *testing.T) {
	var rs []event.Record
	for i := range 3 * replay.KeyEvery {
		rs = append(rs, event.Record{At: 1e18, State: &event.State{Round: uint64(i)}})
	}
	v := view.New()
	for _, r := range rs[:2*replay.KeyEvery] {
		v.Apply(r)
	}
	payload, _ := cbor.Marshal(v)
	l := &keyed{memoryLog{rs: rs}, map[uint64][]byte{2 * replay.KeyEvery: payload}}
	if got, err := fastReplay(l).Snapshot(context.Background(), 2*replay.KeyEvery+5); err != nil ||
		got.State.Round != 2*replay.KeyEvery+4 || l.reads > 10 {
		t.Errorf("%v, round %d, %d records read", err, got.State.Round, l.reads)
	}
	v.Fold, v.State.Round = 0, 7 // of a program that folded less
	l.frames[2*replay.KeyEvery], _ = cbor.Marshal(v)
	if got, err := fastReplay(l).Snapshot(context.Background(), 2*replay.KeyEvery); err != nil ||
		got.State.Round != 2*replay.KeyEvery-1 || got.Fold != view.Fold {
		t.Errorf("a keyframe of another fold: %v, round %d, fold %d", err, got.State.Round, got.Fold)
	}
	l.frames[2*replay.KeyEvery] = []byte("damaged")
	if got, err := fastReplay(l).Snapshot(context.Background(), 2*replay.KeyEvery+5); err != nil ||
		got.State.Round != 2*replay.KeyEvery+4 {
		t.Errorf("a damaged keyframe: %v, round %d", err, got.State.Round)
	}
}

func TestReplayStartsAfterARound(t *testing.T) {
	r := fastReplay(&memoryLog{rs: sourcetest.Run(2, 400)})
	d := open(t, 100, 30, nil, func(o *panel.Options) { o.Source, o.Commander = r, nil })
	for _, c := range []struct{ at, want uint64 }{{150, 152}, {0, 0}, {9999, 400}} {
		d.Opt.At = c.at
		if d.deliver(d.startReading()()); d.Live.Progress.Rounds != c.want || d.Opt.At != 0 {
			t.Errorf("after round %d it begins at round %d, want the first commit at or beyond it", c.at,
				d.Live.Progress.Rounds)
		}
		if on, _ := r.Playing(); on != (c.at == 0) {
			t.Errorf("after round %d it plays: %v; it begins there and stays", c.at, on)
		}
		r.Pause(false)
	}
}

// TestReplayTimesExcludePauses checks that the bar shows training times, like the status line, without pauses of the
// run.
func TestReplayTimesExcludePauses(t *testing.T) {
	rs := sourcetest.Run(2, 400)
	half := len(rs) / 2
	at, hour := rs[half-1].At, int64(time.Hour)
	paused := append(slices.Clone(rs[:half]), event.Record{At: at, State: &event.State{Phase: event.Paused}},
		event.Record{At: at + hour, State: &event.State{Phase: event.Training}})
	for _, r := range rs[half:] {
		r.At += hour
		paused = append(paused, r)
	}
	d := openRecording(t, 100, 30, paused)
	if d.press("end"); d.Live.Elapsed() >= time.Hour {
		t.Fatalf("it trained for %v", d.Live.Elapsed())
	}
	d.shows(textfmt.Duration(d.Live.Elapsed()) + " / " + textfmt.Duration(d.Live.Elapsed()))
}

func TestReplayKeysMove(t *testing.T) {
	rs := sourcetest.Run(2, 400)
	d := openRecording(t, 100, 30, rs)
	r := d.Replay
	d.shows("playing", "recording")
	d.press(":").write("200").press("enter")
	if d.Live.Progress.Rounds != 200 {
		t.Errorf(":200 leads to round %d", d.Live.Progress.Rounds)
	}
	d.press(":").write("goto 401").press("enter")
	if d.shows("goto: round 401 is after the end of the recording at round 400"); d.Live.Progress.Rounds != 200 {
		t.Errorf(":goto 401 leads to round %d", d.Live.Progress.Rounds)
	}
	d.Toast = panel.Toast{}
	d.press(":").write("50%").press("enter")
	if d.Live.Progress.Rounds != 200 {
		t.Errorf(":50%% leads to round %d", d.Live.Progress.Rounds)
	}
	if d.press(":").write("100%").press("enter"); d.Live.Position != uint64(len(rs)) {
		t.Errorf(":100%% leads to record %d of %d", d.Live.Position, len(rs))
	}
	d.press(":").write("nan%").press("enter")
	if d.prompt == nil || !strings.Contains(d.prompt.err, "is not a percentage from 0 to 100") {
		t.Errorf(":nan%% is %+v", d.prompt)
	}
	d.press("esc", ",", ">")
	if on, speed := r.Playing(); on || speed != 2 {
		t.Errorf("playing %v at %g: a step must pause", on, speed)
	}
	d.shows("paused", "2x")
	d.press("space")
	d.shows("playing")
	d.press("k", "l")
	d.shows("this is a recording")
}

// shortLog is a log whose first records were removed.
type shortLog struct {
	memoryLog
	first uint64
}

func (l *shortLog) First() uint64 { return l.first }

func (l *shortLog) Seek(n uint64) error {
	if n < l.first {
		return errors.New("before the beginning")
	}
	return l.memoryLog.Seek(n)
}

// TestReplayOfAShortenedLog checks that a replay of a log without its first records begins with its first one, also
// where a position before it is requested, and that all later positions are those of the records.
func TestReplayOfAShortenedLog(t *testing.T) {
	rs := sourcetest.Run(2, 40)
	const first, head = 20, 3
	before := view.New()
	for _, rec := range rs[:first+head] {
		before.Apply(rec)
	}
	short := slices.Clone(rs)
	config := *rs[0].Config
	config.Begins = &event.Beginning{Round: 1, First: first, Head: head, View: before.Beginning(1 << 20)}
	short[first] = event.Record{At: rs[0].At, Config: &config}
	r := fastReplay(&shortLog{memoryLog{rs: short}, first})
	ctx := testutil.Context(t)
	want := fastReplay(&memoryLog{rs: rs})
	for _, at := range []view.Position{first + head, first + head + 7, view.Position(len(rs)), 5, 0} {
		b, err := r.Next(ctx, at, 1)
		if from := max(at, first); at < view.Position(len(rs)) && (err != nil || b.Next != from+1) {
			t.Fatalf("the record after position %d leads to %d, %v", at, b.Next, err)
		}
		got, err := r.Snapshot(ctx, at)
		if err != nil {
			t.Fatal(err)
		}
		v, err := want.Snapshot(ctx, max(at, first+head))
		switch {
		case err != nil:
			t.Fatal(err)
		case at == 0:
			continue
		case got.Position != max(at, first+1) || got.Progress != v.Progress || len(got.Series) != len(v.Series):
			t.Errorf("at %d: position %d, %+v, %d series; of the whole log %+v, %d series", at, got.Position, got.Progress,
				len(got.Series), v.Progress, len(v.Series))
		}
	}
	if err := r.Scan(ctx); err != nil || r.Extent().Records != view.Position(len(rs)) {
		t.Errorf("it ends at %d of %d, %v", r.Extent().Records, len(rs), err)
	}
}
