package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"brood/runtime/event"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
	"brood/tui/cell"
	"brood/tui/panel"
)

// broken is a source that does not answer while err is set.
type broken struct {
	*sourcetest.Memory
	err   error
	asked int
}

func (b *broken) Snapshot(ctx context.Context, at view.Position) (*view.View, error) {
	if b.asked++; b.err != nil {
		return nil, b.err
	}
	return b.Memory.Snapshot(ctx, at)
}

// due lets time go by, and says how often a lost run was asked.
func (d *desk) due(src *broken, t time.Duration) (asked int) {
	before := src.asked
	d.now = d.now.Add(t)
	if cmd := d.retry(); cmd != nil {
		d.deliver(cmd())
	}
	return src.asked - before
}

// TestKilledRun: where the process of a run is gone, the screen says so at once, after which round, and how to go on.
func TestKilledRun(t *testing.T) {
	for _, size := range [][2]int{{40, 10}, {80, 24}, {200, 50}} {
		src := &broken{Memory: sourcetest.NewMemory(sourcetest.Run(3, 50)...)}
		d := open(t, size[0], size[1], nil, func(o *panel.Options) { o.Source, o.Resume = src, "brood run --resume a" })
		d.shows("● training")
		d.Say(cell.Plain, "something said just before")
		d.Update(batchMsg{gen: d.Feed.Gen, err: view.ErrKilled})
		src.err = view.ErrKilled
		d.shows("✗ killed")
		if size[0] >= 80 {
			d.shows("killed after round 48: brood run --resume a", "q leave")
		}
		d.hides("● training", " left ", "samples/s", "training goes on")
		d.due(src, time.Minute)
		d.shows("✗ killed")
		d.press("space")
		d.shows("killed after round 48")
		src.err = nil
		src.Append(event.Record{At: 2e18, State: &event.State{Phase: event.Paused}},
			event.Record{At: 2e18, State: &event.State{Phase: event.Training}})
		d.due(src, time.Minute)
		d.shows("● training", "answers again")
		d.hides("killed")
	}
}

// TestResumedRun: a screen that shows a run which has ended follows it when somebody resumes it.
func TestResumedRun(t *testing.T) {
	rs := append(sourcetest.Run(3, 50), event.Record{At: 2e18, State: &event.State{Phase: event.Finished, Round: 50}})
	src := &broken{Memory: sourcetest.NewMemory(rs...)}
	d := open(t, 80, 24, nil, func(o *panel.Options) { o.Source = src })
	d.Update(batchMsg{gen: d.Feed.Gen, err: io.EOF})
	d.shows("✓ finished")
	src.err = errors.New("nobody listens")
	for range 3 {
		if d.due(src, time.Minute) != 1 {
			t.Error("a run that has ended is not asked whether it goes on")
		}
		d.shows("✓ finished")
		d.hides("nobody listens", "no answer")
	}
	if src.err = nil; d.due(src, time.Second) > 0 {
		t.Error("it is asked again within a second")
	}
	src.Append(event.Record{At: 3e18, State: &event.State{Phase: event.Training, Round: 50}})
	d.due(src, time.Minute)
	d.shows("● training", "the run was resumed after round 48")
	d.hides("finished")
}

// TestVanishedRun: where the machine of a run elsewhere says that its process is gone, the screen says that and no
// more: it may have ended before. It is asked again all the same.
func TestVanishedRun(t *testing.T) {
	for _, size := range [][2]int{{40, 10}, {80, 24}, {200, 50}} {
		src := &broken{Memory: sourcetest.NewMemory(sourcetest.Run(3, 50)...), err: nil}
		d := open(t, size[0], size[1], nil, func(o *panel.Options) { o.Source = src })
		src.err = fmt.Errorf("the run does not answer: %w", view.ErrNoProcess)
		d.Update(batchMsg{gen: d.Feed.Gen, err: src.err})
		d.shows("✗ gone")
		if size[0] >= 80 {
			d.shows("process gone after round 48: where it ran, brood serve --resume", "q leave")
		}
		d.hides("● training", " left ", "samples/s", "training goes on", "killed", "no answer")
		if d.due(src, time.Minute) == 0 {
			t.Error("it is not asked again")
		}
		src.err = errors.New("broken pipe")
		d.due(src, time.Minute)
		d.shows("? no answer")
		src.err = nil
		d.due(src, time.Minute)
		d.shows("● training", "answers again")
	}
}

// TestLostRun: a run that does not answer is asked again after ever longer waits, and nothing says that it trains.
func TestLostRun(t *testing.T) {
	src := &broken{Memory: sourcetest.NewMemory(sourcetest.Run(3, 50)...), err: nil}
	d := open(t, 80, 24, nil, func(o *panel.Options) { o.Source = src })
	src.err = errors.New("broken pipe")
	d.Update(batchMsg{gen: d.Feed.Gen, err: src.err})
	d.shows("? no answer", "disconnected", "retry in 1 s", "broken pipe", "q leave")
	d.hides("● training", "training goes on", " left")
	var waits []time.Duration
	for range 8 {
		for wait := time.Duration(0); ; wait += firstRetryWait {
			if d.due(src, firstRetryWait) > 0 {
				waits = append(waits, wait+firstRetryWait)
				break
			}
		}
		d.shows("? no answer")
	}
	for i, w := range waits {
		if want := min(firstRetryWait<<i, maxRetryWait); w != want {
			t.Errorf("it is asked after %v, want %v for the try %d", waits, want, i)
		}
	}
	src.err = nil
	d.due(src, maxRetryWait)
	d.shows("● training")
	d.Update(batchMsg{gen: d.Feed.Gen, err: io.EOF})
	if d.Feed.Lost != nil || !d.Feed.Ended {
		t.Error("the end of a run is taken for a loss")
	}
}

// dying is a source that breaks after its first records.
type dying struct {
	*sourcetest.Memory
	calls int
}

func (d *dying) Next(ctx context.Context, after view.Position, most int) (view.Batch, error) {
	if d.calls++; d.calls > 1 {
		return view.Batch{}, errors.New("broken pipe")
	}
	return d.Memory.Next(ctx, after, most)
}

// TestLossIsToldAtOnce: a source that breaks while a frame is gathered is not asked once more, which may take long,
// before that is told.
func TestLossIsToldAtOnce(t *testing.T) {
	src := &dying{Memory: sourcetest.NewMemory()}
	d := open(t, 80, 24, nil, func(o *panel.Options) { o.Source = src })
	src.Append(sourcetest.Run(3, 5)...)
	msg := d.read()().(batchMsg)
	if msg.err == nil || len(msg.batch.Records) == 0 {
		t.Fatalf("%d records, %v", len(msg.batch.Records), msg.err)
	}
	d.Update(msg)
	d.shows("? no answer", "broken pipe")
	if d.Live.Position != uint64(len(msg.batch.Records)) {
		t.Errorf("the records before the loss are not shown: %d of %d", d.Live.Position, len(msg.batch.Records))
	}
}

// TestRecordingThatIsCutOff: at the end of a recording without the end of its run it was cut off; before it, it is a
// replay.
func TestRecordingThatIsCutOff(t *testing.T) {
	rs := sourcetest.Run(3, 50)
	for _, ends := range []bool{false, true} {
		if ends {
			rs = append(rs, event.Record{At: 2e18, State: &event.State{Phase: event.Finished}})
		}
		d := open(t, 80, 24, nil, func(o *panel.Options) { o.Source, o.Commander = fast(&tape{rs: rs}), nil })
		d.Update(batchMsg{gen: d.Feed.Gen, batch: view.Batch{Records: rs[:40]}})
		d.shows("▶ replay", "recording")
		d.Update(batchMsg{gen: d.Feed.Gen, batch: view.Batch{Records: rs[40:]}, err: io.EOF})
		if ends {
			d.shows("✓ finished")
			continue
		}
		d.shows("✗ cut off")
		d.hides("● training", " left ")
	}
}
