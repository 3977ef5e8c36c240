package tui

import (
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/event"
	"brood/runtime/session"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
	"brood/tui/cell"
	"brood/tui/panel"
	"brood/tui/replay"
)

// openRecording opens a scanned recording of these records at its beginning.
func openRecording(t testing.TB, w, h int, rs []event.Record) *desk {
	r := fastReplay(&memoryLog{rs: rs})
	if err := r.Scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	d := open(t, w, h, nil, func(o *panel.Options) { o.Source, o.Commander = r, nil })
	d.screenText()
	return d
}

// bar returns the cells between the ends of the timeline; "" if there is none.
func (d *desk) bar() string {
	lines := strings.Split(d.screenText(), "\n")
	_, s, _ := strings.Cut(lines[len(lines)-2], "├")
	s, _, _ = strings.Cut(s, "┤")
	return s
}

// TestTimelineCells checks that a cell leads to a round that is drawn in that cell, and that the ends are those of the
// run.
func TestTimelineCells(t *testing.T) {
	for _, total := range []uint64{0, 1, 7, 100, 1 << 40} {
		for _, w := range []int{1, 2, 38, 200} {
			s := timeScale{total: total, w: w}
			for i := range w {
				if got := s.column(s.round(i)); total >= uint64(w) && got != i || got < 0 || got >= w {
					t.Fatalf("%d rounds in %d cells: cell %d is round %d, in cell %d", total, w, i, s.round(i), got)
				}
			}
			if w > 1 && (s.round(-9) != 0 || s.round(w+9) != total) {
				t.Errorf("%d rounds in %d cells: the ends are %d and %d", total, w, s.round(-9), s.round(w+9))
			}
		}
	}
}

// TestTimelineShowsTheMoreImportantMark checks which of two marks in one cell is drawn, for all pairs, in either order.
func TestTimelineShowsTheMoreImportantMark(t *testing.T) {
	order := []replay.Kind{replay.Alert, replay.Edit, replay.Note, replay.Checkpoint, replay.Evaluation}
	s := timeScale{total: 1000, w: 11}
	for i, a := range order {
		for _, b := range order[i:] {
			one, two := replay.Mark{Kind: a, Round: 500}, replay.Mark{Kind: b, Round: 510}
			for _, marks := range [][]replay.Mark{{one, two}, {two, one}} {
				if got := s.kinds(slices.Values(marks)); got[5] != a || got[4] != 0 || got[6] != 0 {
					t.Errorf("marks %v give %v", marks, got)
				}
			}
		}
	}
}

// TestTimelineGlyphs checks that the marks, the position, the line and its ends differ without colours, in Unicode and
// ASCII.
func TestTimelineGlyphs(t *testing.T) {
	for _, ascii := range []bool{false, true} {
		g := cell.New(16, 1)
		for i, r := range []rune{'●', '─', '├'} {
			g.Set(i, 0, r, cell.Plain)
		}
		for kind := replay.Evaluation; kind <= replay.Alert; kind++ {
			g.Set(2+int(kind), 0, markStyles[kind].glyph, cell.Plain)
		}
		text := []rune(strings.TrimSpace(cell.Plainly(ascii).String(g)))
		slices.Sort(text)
		if n := len(text); len(slices.Compact(text)) != n || n != 8 {
			t.Errorf("ascii %v: %q has equal glyphs", ascii, string(text))
		}
	}
}

// TestTimelineOfARecording checks the marks of the whole recording at any position, the text, and how checkpoints that
// are stored replace the recorded ones.
func TestTimelineOfARecording(t *testing.T) {
	d := openRecording(t, 80, 24, sourcetest.Run(2, 400))
	at := func(round uint64) int { return timeScale{total: 400, w: d.timelineAt.W}.column(round) }
	want := func(position uint64, marks map[uint64]rune) {
		t.Helper()
		bar := []rune(d.bar())
		for i, r := range bar {
			wanted := []rune{'─', '━'}
			for round, glyph := range marks {
				if at(round) == i {
					wanted = []rune{glyph}
				}
			}
			if at(position) == i {
				wanted = []rune{'●'}
			}
			if !slices.Contains(wanted, r) {
				t.Errorf("cell %d of %q is %q, want one of %q", i, string(bar), r, wanted)
			}
		}
	}
	marks := map[uint64]rune{103: '▲', 200: '◇', 300: '!'}
	want(0, marks)
	d.press(":").write("25%").press("enter")
	want(100, marks)
	d.shows("100 of 400 (25 %)")
	d.Checkpoints = []uint64{40, 360}
	d.Notes = []session.RoundNote{{Round: 250, Text: "here"}}
	want(100, map[uint64]rune{40: '◇', 103: '▲', 200: '┴', 250: '"', 300: '!', 360: '◇'})
	d.press("}")
	d.shows("▲  100 of 400") // the edit was recorded there, and is in effect from 103
}

// TestDenseEvaluationsAreOmitted checks that evaluations are drawn, and stopped at, only if they leave every second
// cell free, in a recording and a live run.
func TestDenseEvaluationsAreOmitted(t *testing.T) {
	for _, every := range []uint64{40, 8} {
		var rs []event.Record
		for _, r := range sourcetest.Run(2, 400) {
			if r.Evaluation != nil || r.Checkpoint != nil || r.Alert != nil || r.Edit != nil && r.Edit.At > 0 {
				continue
			}
			if rs = append(rs, r); r.Commit != nil && r.Commit.To%every == 0 {
				scored := &event.Evaluation{Round: r.Commit.To, TestError: 1}
				rs = append(rs, event.Record{At: r.At, Evaluation: scored})
			}
		}
		d, live := openRecording(t, 80, 24, rs), open(t, 80, 24, rs, nil)
		d.press("end")
		live.press("home", "left")
		if a, b := strings.Count(d.bar(), "┴") > 0, strings.Count(live.bar(), "┴") > 0; a != (every == 40) || b != a {
			t.Errorf("every %d rounds: drawn %v in the recording, %v in the run:\n%s\n%s", every, a, b, d.bar(),
				live.bar())
		}
		d.press("home", "}")
		live.press("}")
		if stops := d.Live.Progress.Rounds == 40 && live.Cursor.Round == 40; stops != (every == 40) {
			t.Errorf("every %d rounds: } leads to %d and %d", every, d.Live.Progress.Rounds, live.Cursor.Round)
		}
	}
}

// TestLiveMarksAreThoseOfTheRecording checks that both sources of marks apply the same rules.
func TestLiveMarksAreThoseOfTheRecording(t *testing.T) {
	rs := sourcetest.Run(6, 400)
	v := view.New()
	for _, r := range rs {
		v.Apply(r)
	}
	kinds := func(marks []replay.Mark) (out []replay.Mark) {
		for _, k := range marks {
			if k.Kind != replay.Evaluation {
				out = append(out, replay.Mark{Kind: k.Kind, Round: k.Round})
			}
		}
		slices.SortFunc(out, func(a, b replay.Mark) int { return int(a.Round) - int(b.Round) })
		return slices.Compact(out)
	}
	d := openRecording(t, 80, 24, rs)
	if a, b := kinds(d.Replay.Marks()), kinds(replay.ViewMarks(v)); !slices.Equal(a, b) || len(a) < 3 {
		t.Errorf("recorded %v, live %v", a, b)
	}
}

// TestTimelineKeys checks the keys that move a recording, also where a share of it is shorter than a commit.
func TestTimelineKeys(t *testing.T) {
	d := openRecording(t, 100, 30, sourcetest.Run(2, 400)) // a commit has 4 rounds, 1 %
	for _, c := range []struct {
		keys string
		want uint64
	}{
		{"end", 400}, {"left", 396}, {"pgup", 356}, {"pgdown pgdown", 400}, {"pgdown", 400}, {", ,", 392}, {".", 396},
		{"home", 0}, {"left", 0}, {"right", 4}, {"}", 100}, {"}", 200}, {"} {", 200}, {"{", 100}, {"home {", 0},
	} {
		if d.press(strings.Fields(c.keys)...); d.Live.Progress.Rounds != c.want {
			t.Errorf("%s leads to round %d, want %d", c.keys, d.Live.Progress.Rounds, c.want)
		}
	}
	if !strings.Contains(d.Toast.Text, "no mark before") {
		t.Errorf("before the first mark it says %q", d.Toast.Text)
	}
	short := openRecording(t, 100, 30, sourcetest.Run(2, 12))
	short.press("end", "left")
	if got := short.Live.Progress.Rounds; got != 8 {
		t.Errorf("1 %% of 12 rounds in commits of 4 leads to %d", got)
	}
	if short.press("right"); short.Live.Progress.Rounds != 12 {
		t.Errorf("and back to %d", short.Live.Progress.Rounds)
	}
}

// TestMovesAreNotLost checks that moves that arrive before the snapshot of an earlier one start from its target, that
// the earlier one is shown, and that of the later ones only the newest is read.
func TestMovesAreNotLost(t *testing.T) {
	d := openRecording(t, 100, 30, sourcetest.Run(2, 400))
	d.press("end")
	d.Update(keyMsg("pgup"))
	first := d.last
	for range 3 {
		if d.Update(keyMsg("pgup")); d.last != nil {
			t.Fatal("a move is read while another one is awaited")
		}
	}
	d.Update(first())
	if d.Live.Progress.Rounds != 360 {
		t.Errorf("the first of the moves is at %d", d.Live.Progress.Rounds)
	}
	if d.settle(); d.Live.Progress.Rounds != 240 || d.travel != (travel{}) {
		t.Errorf("four moves by 10 %% lead from 400 to %d, %+v", d.Live.Progress.Rounds, d.travel)
	}
}

// TestTimelineByMouse checks that a press and a drag on the timeline move, in a recording and a live run, and that a
// drag that leaves the row or its ends stays on it.
func TestTimelineByMouse(t *testing.T) {
	recording, live := openRecording(t, 100, 30, sourcetest.Run(2, 400)), open(t, 100, 30, sourcetest.Run(2, 400), nil)
	live.screenText()
	if live.timelineAt.W != 0 {
		t.Fatal("a live run has a timeline before its cursor is in the past")
	}
	live.press("home")
	for _, d := range []*desk{recording, live} {
		round := func() uint64 {
			if d.Replay != nil {
				return d.Live.Progress.Rounds
			}
			return d.Cursor.Round
		}
		d.screenText()
		at := d.timelineAt
		drag := func(msg tea.Msg) {
			d.Update(msg)
			d.settle()
			d.screenText()
		}
		near := func(want uint64) {
			t.Helper()
			if got := round(); got+4 < want || got > want+4 {
				t.Errorf("recording %v: the position is %d, want %d", d.Replay != nil, got, want)
			}
		}
		drag(tea.MouseClickMsg{X: at.X + at.W/4, Y: at.Y})
		near(100)
		drag(tea.MouseMotionMsg{X: at.X + at.W/2, Y: at.Y - 9})
		near(200)
		if bar := []rune(d.bar()); bar[at.W/2] != '●' {
			t.Errorf("recording %v: the position is not under the mouse: %s", d.Replay != nil, string(bar))
		}
		drag(tea.MouseMotionMsg{X: 0, Y: 0})
		near(0)
		drag(tea.MouseMotionMsg{X: 99, Y: at.Y})
		near(400)
		window := d.Window
		drag(tea.MouseReleaseMsg{X: at.X + 3, Y: at.Y})
		drag(tea.MouseMotionMsg{X: at.X + 3, Y: at.Y})
		if near(400); d.Window != window {
			t.Errorf("recording %v: a drag on the timeline zooms", d.Replay != nil)
		}
	}
}

// TestDragInAChartOfALiveRun checks that a drag zooms from any row of a chart, although its press adds the timeline.
func TestDragInAChartOfALiveRun(t *testing.T) {
	for y := range 100 {
		d := open(t, 120, 40, sourcetest.Run(2, 400), nil)
		d.screenText()
		p := d.lossPlot()
		if y >= p.H {
			break
		}
		d.Update(tea.MouseClickMsg{X: p.X + p.W/4, Y: p.Y + y})
		d.screenText()
		if d.Update(tea.MouseReleaseMsg{X: p.X + p.W/2, Y: p.Y + y}); d.Window.Span == 0 || d.Cursor.On {
			t.Errorf("a drag in row %d of %d: window %+v, cursor %+v", y, p.H, d.Window, d.Cursor)
		}
	}
}

// TestTimelineFollowsCheckpoints checks that the stored checkpoints are read at the start and after each new one.
func TestTimelineFollowsCheckpoints(t *testing.T) {
	s := &fakeLibrary{list: recordedOnes(), checkpoints: []uint64{40}}
	closed := sourcetest.NewMemory(sourcetest.Run(2, 400)...)
	closed.Close()
	d := open(t, 80, 24, nil, func(o *panel.Options) { o.Source, o.Library, o.Session = closed, s, s.list[0].Dir })
	d.deliver(d.loadCheckpoints()())
	s.checkpoints = []uint64{360, 404}
	d.Update(batchMsg{gen: d.Feed.Gen, batch: view.Batch{Records: []event.Record{
		{At: 1e18 + 500e9, Checkpoint: &event.Checkpoint{Round: 404}}}}})
	if !slices.Equal(d.Checkpoints, []uint64{40}) {
		t.Fatalf("the checkpoints are %v", d.Checkpoints)
	}
	if both, ok := d.last().(tea.BatchMsg); ok {
		d.deliver(both[1]())
	}
	if !slices.Equal(d.Checkpoints, s.checkpoints) {
		t.Errorf("after a new one the checkpoints are %v", d.Checkpoints)
	}
}

// TestLiveHistory checks that the timeline of a live run appears with its cursor and goes with it, that the window of
// the charts follows the cursor, and that new rounds do not move it.
func TestLiveHistory(t *testing.T) {
	d := open(t, 80, 24, sourcetest.Run(2, 400), nil)
	if d.bar() != "" {
		t.Fatal("there is a timeline before the cursor is in the past")
	}
	d.press("+", "+", "{")
	d.shows("◂ history", "300 of 400 (75 %)", "{ } mark", "end follow")
	d.press("{", "{")
	if lo, hi := d.Rounds(); d.Cursor.Round != 103 || lo > 103 || hi <= 103 || hi-lo != 100 {
		t.Errorf("the third mark back is %d, shown is %d to %d", d.Cursor.Round, lo, hi)
	}
	d.apply(event.Record{At: 1e18 + 500e9, Commit: &event.Commit{To: 404, Rounds: 4, Epoch: 1,
		Progress: event.Progress{Rounds: 404}}})
	d.shows("103 of 404 (25 %)")
	d.press("2") // a screen without a cursor
	d.hides("history")
	d.press("1", "esc")
	d.hides("history")
	d.press("}")
	if d.Cursor.On || !strings.Contains(d.Toast.Text, "no mark after") {
		t.Errorf("after the newest round } leads to %+v, %q", d.Cursor, d.Toast.Text)
	}
}
