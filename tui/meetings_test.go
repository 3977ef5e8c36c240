package tui

import (
	"fmt"
	"strings"
	"testing"

	"brood/models/engine"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
	"brood/tui/cell"
	"brood/tui/panel/live"
)

// exponential returns pushes on the exponential graph: from each of n members to the one 2^a further on the ring, with
// a increasing by one each round.
func exponential(n int) func(round uint64) *event.Points {
	return func(round uint64) *event.Points {
		p := &event.Points{Members: collective.IDs(n)}
		var hops []int
		for h := 1; h < n; h *= 2 {
			hops = append(hops, h)
		}
		for i := range n {
			p.Values = append(p.Values, float64((i+hops[round%uint64(len(hops))])%n))
		}
		return p
	}
}

// matrix returns the characters of the matrix cells in the population panel, and the panel.
func matrix(d *desk) (cells [][]rune, panel []string) {
	d.t.Helper()
	const w, h = 100, 50
	g := cell.New(w, h)
	live.DrawHeat(d.model.Host, g, g.Rect())
	panel = strings.Split(cell.Plainly(false).String(g), "\n")
	_, lower := g.Rect().Top(h / 2)
	_, body := lower.Top(2)
	f := live.FitMeetings(body, len(d.Shown.Members().Members))
	for y := 0; y < f.At.H; y += f.Size {
		var row []rune
		for x := 0; x < f.At.W; x += 2 * f.Size {
			row = append(row, g.At(f.At.X+x, f.At.Y+y).R)
		}
		cells = append(cells, row)
	}
	return cells, panel
}

// TestUniformMeetingsLookUniform checks that random pairs have one shade, also with several members a row; a member
// does not meet itself.
func TestUniformMeetingsLookUniform(t *testing.T) {
	for _, n := range []int{2, 3, 8, 16, 23, 64, 130} {
		cells, panel := matrix(open(t, 200, 50, sourcetest.Gossip(n, 300), nil))
		seen := map[rune]int{}
		for i, row := range cells {
			for j, r := range row {
				if i == j && n <= 23 {
					if r != ' ' {
						t.Errorf("%d members: %d and itself are %q", n, i, r)
					}
					continue
				}
				if seen[r]++; r != cells[j][i] {
					t.Errorf("%d members: %d and %d are %q and %q", n, i, j, r, cells[j][i])
				}
			}
		}
		if k := len(cells); k < 2 || seen['▒'] < (k*k-k)*98/100 {
			t.Errorf("%d members: %d rows, shades %v:\n%s", n, k, seen, strings.Join(panel, "\n"))
		}
		if each := (n + 22) / 23; each > 1 != strings.Contains(strings.Join(panel, "\n"),
			fmt.Sprintf("%d members a row", each)) {
			t.Errorf("%d members: it does not say how many a row has, or says it for nothing:\n%s", n,
				strings.Join(panel, "\n"))
		}
	}
}

// TestMeetingsFollowTheRun checks the message without meetings; a member that left has no row, and another algorithm
// has no matrix.
func TestMeetingsFollowTheRun(t *testing.T) {
	rs := sourcetest.Partners(sourcetest.Run(3, 1), func(uint64) *event.Points {
		return &event.Points{Members: collective.IDs(3), Values: []float64{0, 1, 2}}
	})
	d := open(t, 200, 50, rs, nil)
	if _, panel := matrix(d); !strings.Contains(strings.Join(panel, "\n"), "no members met in the last round") {
		t.Errorf("%s", strings.Join(panel, "\n"))
	}
	put := func(r event.Record) { d.Shown.Apply(r) }
	meet := func(round uint64, members []engine.Member, partner ...float64) {
		put(event.Record{Points: &event.Points{Round: round, Series: view.Partner, Members: members, Values: partner}})
		put(event.Record{Commit: &event.Commit{To: round, Rounds: 1, Progress: event.Progress{Rounds: round}}})
	}
	plan := func(at uint64, r collective.Roster, alg string) {
		put(event.Record{Plan: &event.Plan{Epoch: d.Shown.Plan.Epoch + 1, At: at, From: event.Workers,
			Old: d.Shown.Members(), New: r, OldAlg: d.Shown.Algorithm(), Algorithm: alg}})
	}
	has := func(want bool, what ...string) {
		t.Helper()
		_, panel := matrix(d)
		lower := strings.Join(panel[25:], "\n")
		for _, w := range what {
			if strings.Contains(lower, w) != want {
				t.Errorf("%q shown is not %v:\n%s", w, want, lower)
			}
		}
	}
	meet(2, collective.IDs(3), 1, 0, 2)
	meet(3, collective.IDs(3), 1, 0, 2)
	meet(4, collective.IDs(3), 2, 1, 0)
	has(true, "last 4 rounds", "0–2 a pair", "m0", "m1", "m2", "if all equal: 1")
	plan(4, collective.Roster{Members: []engine.Member{0, 2}, Owner: []int{1, 1}}, "sample")
	has(true, "last 4 rounds", "1–1 a pair", "m0", "m2")
	has(false, "m1")
	plan(4, d.Shown.Members(), "other")
	has(false, "meetings")
}

// TestMeetingsDoNotMove checks that the matrix and its labels do not move while rounds arrive.
func TestMeetingsDoNotMove(t *testing.T) {
	rs := sourcetest.Gossip(8, 200)
	d := open(t, 200, 50, rs[:60], nil)
	var before []string
	for i := 60; i < len(rs); i += 30 {
		d.Update(batchMsg{gen: d.Feed.Gen, batch: view.Batch{Records: rs[i:min(len(rs), i+30)]}})
		cells, panel := matrix(d)
		var names []string
		for _, l := range panel[26:] {
			names = append(names, string([]rune(l)[:9]))
		}
		if len(cells) != 8 || before != nil && strings.Join(before, "\n") != strings.Join(names, "\n") {
			t.Fatalf("at record %d:\n%s", i, strings.Join(panel, "\n"))
		}
		before = names
	}
}

// TestMeetingScale checks that the scale omits shades that no number of meetings has.
func TestMeetingScale(t *testing.T) {
	for _, c := range []struct {
		even float64
		each int
		want string
	}{
		{57.1, 1, "· never|░ below 35|▒ below 80|▓ below 252|█ 252 and more|  if all equal: 57"},
		{2, 1, "· never|▒ below 7|▓ below 13|█ 13 and more|  if all equal: 2"},
		{0.1, 1, "· never|▒ below 2|█ 2 and more|  if all equal: 0.1"},
		{0.065, 23,
			"· never|░ below 0.017|▒ below 0.11|▓ below 0.31|█ 0.31 and more|  if all equal: 0.065|  23 members a row:|  mean of their pairs"},
		{1e5, 1, "· never|░ below 99 052|▒ below 100 949|▓ below 400 949|█ 400 949 and more|  if all equal: 100 000"},
	} {
		g := cell.New(30, 10)
		live.DrawMeetingScale(g, g.Rect(), c.even, c.each)
		var got []string
		for _, l := range strings.Split(cell.Plainly(false).String(g), "\n") {
			if l = strings.TrimRight(l, " "); l != "" {
				got = append(got, l)
			}
		}
		if s := strings.Join(got, "|"); s != c.want {
			t.Errorf("%v, %d a row: %s", c.even, c.each, s)
		}
	}
}
