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

// failingSource is a source that fails while err is set.
type failingSource struct {
	*sourcetest.Memory
	err   error
	asked int
}

func (b *failingSource) Snapshot(ctx context.Context, at view.Position) (*view.View, error) {
	if b.asked++; b.err != nil {
		return nil, b.err
	}
	return b.Memory.Snapshot(ctx, at)
}

// due advances the clock and returns how often a lost run was requested.
func (d *desk) due(src *failingSource, t time.Duration) (asked int) {
	before := src.asked
	d.now = d.now.Add(t)
	if cmd := d.retry(); cmd != nil {
		d.deliver(cmd())
	}
	return src.asked - before
}

// TestRunWithoutAProcess checks that the screen shows at once that a run's process is gone, after which round, and how
// to resume it: a killed one here, or one on another machine. The workbench keeps retrying.
func TestRunWithoutAProcess(t *testing.T) {
	for _, c := range []struct {
		err         error
		phase, text string
		hides       []string
	}{
		{view.ErrKilled, "✗ killed", "killed after round 48: brood run --resume a", nil},
		{fmt.Errorf("the run does not answer: %w", view.ErrNoProcess), "✗ gone",
			"process gone after round 48: where it ran, brood serve --resume", []string{"killed", "no answer"}},
	} {
		for _, size := range [][2]int{{40, 10}, {80, 24}, {200, 50}} {
			src := &failingSource{Memory: sourcetest.NewMemory(sourcetest.Run(3, 50)...)}
			d := open(t, size[0], size[1], nil, func(o *panel.Options) { o.Source, o.Resume = src, "brood run --resume a" })
			d.shows("● training")
			d.Say(cell.Plain, "something said just before")
			src.err = c.err
			d.Update(batchMsg{gen: d.Feed.Gen, err: c.err})
			d.shows(c.phase)
			if size[0] >= 80 {
				d.shows(c.text, "q leave")
			}
			d.hides(append(c.hides, "● training", " left ", "samples/s", "training continues")...)
			if d.due(src, time.Minute) == 0 {
				t.Error("it is not asked again")
			}
			d.shows(c.phase)
			d.press("space")
			d.shows("after round 48")
			src.err = errors.New("broken pipe")
			d.Toast = panel.Toast{}
			d.due(src, time.Minute)
			d.shows("? no answer")
			src.err = nil
			src.Append(event.Record{At: 2e18, State: &event.State{Phase: event.Paused}},
				event.Record{At: 2e18, State: &event.State{Phase: event.Training}})
			d.due(src, time.Minute)
			d.shows("● training", "answers again")
			d.hides("killed", "gone")
		}
	}
}

// TestResumedRun checks that the screen of an ended run follows it when it is resumed.
func TestResumedRun(t *testing.T) {
	rs := append(sourcetest.Run(3, 50), event.Record{At: 2e18, State: &event.State{Phase: event.Finished, Round: 50}})
	src := &failingSource{Memory: sourcetest.NewMemory(rs...)}
	d := open(t, 80, 24, nil, func(o *panel.Options) { o.Source = src })
	d.Update(batchMsg{gen: d.Feed.Gen, err: io.EOF})
	d.shows("✓ finished")
	src.err = errors.New("connection refused")
	for range 3 {
		if d.due(src, time.Minute) != 1 {
			t.Error("an ended run is not checked for a resume")
		}
		d.shows("✓ finished")
		d.hides("connection refused", "no answer")
	}
	if src.err = nil; d.due(src, time.Second) > 0 {
		t.Error("it is asked again within a second")
	}
	src.Append(event.Record{At: 3e18, State: &event.State{Phase: event.Training, Round: 50}})
	d.due(src, time.Minute)
	d.shows("● training", "the run was resumed after round 48")
	d.hides("finished")
}

// TestLostRun checks that a run that does not answer is requested with growing waits and not shown as training.
func TestLostRun(t *testing.T) {
	src := &failingSource{Memory: sourcetest.NewMemory(sourcetest.Run(3, 50)...), err: nil}
	d := open(t, 80, 24, nil, func(o *panel.Options) { o.Source = src })
	src.err = errors.New("broken pipe")
	d.Update(batchMsg{gen: d.Feed.Gen, err: src.err})
	d.shows("? no answer", "disconnected", "retry in 1 s", "broken pipe", "q leave")
	d.hides("● training", "training continues", " left")
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

// dyingSource is a source that fails after its first records.
type dyingSource struct {
	*sourcetest.Memory
	calls int
}

func (d *dyingSource) Next(ctx context.Context, after view.Position, most int) (view.Batch, error) {
	if d.calls++; d.calls > 1 {
		return view.Batch{}, errors.New("broken pipe")
	}
	return d.Memory.Next(ctx, after, most)
}

// TestReadErrorsAreReportedAtOnce checks that an error within a frame is reported before the next read, which may
// block.
func TestReadErrorsAreReportedAtOnce(t *testing.T) {
	src := &dyingSource{Memory: sourcetest.NewMemory()}
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

// TestCutOffRecording checks that a recording without the end of its run is shown as cut off at its end, and as a
// replay before.
func TestCutOffRecording(t *testing.T) {
	rs := sourcetest.Run(3, 50)
	for _, ends := range []bool{false, true} {
		if ends {
			rs = append(rs, event.Record{At: 2e18, State: &event.State{Phase: event.Finished}})
		}
		d := open(t, 80, 24, nil, func(o *panel.Options) {
			o.Source, o.Commander = fastReplay(&memoryLog{rs: rs}),
				nil
		})
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
