package tui

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

func readCSV(t *testing.T, path string) [][]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestExport(t *testing.T) {
	for _, c := range []struct {
		focus panel.ID
		head  string
		rows  int
	}{
		// 400 rounds of 6 members, all and median; the centre's 100 probes; one evaluation, two numbers.
		{"loss", "series,member,round,to,points,min,mean,max", 400*8 + 100 + 2},
		{"fitness", "series,member,round,to,points,min,mean,max", 2 * 100 * 8},
		{"replicas", "series,member,round,to,points,min,mean,max", 400 * 8},
		{"population", "series,member,round,to,points,min,mean,max", 400 * 8},
		{"score", "series,member,round,to,points,min,mean,max", 2},
		{"bandwidth", "round,rounds,seconds,operation,sent_bytes,predicted_bytes", 200},
		{"events", "time,trained_seconds,round,level,kind,text", 7},
		{"knobs", "time,round,algorithm,knob,before,after,by", 2},
		{"history", "time,round,algorithm,knob,before,after,by", 2},
	} {
		t.Run(string(c.focus), func(t *testing.T) {
			dir := t.TempDir()
			t.Chdir(dir)
			d := open(t, 200, 50, sourcetest.Run(6, 400),
				func(o *panel.Options) { o.Session = filepath.Join("/somewhere", "run-7f3a") })
			d.Focus = c.focus
			d.press("E")
			want := filepath.Join(dir, "run-7f3a-"+string(c.focus)+".csv")
			all := readCSV(t, want)
			if len(all) != c.rows+1 || strings.Join(all[0], ",") != c.head {
				t.Errorf("%d rows below %v, want %d below %s", len(all)-1, all[0], c.rows, c.head)
			}
			if got := d.Toast.Text; !strings.Contains(got, want) ||
				!strings.HasPrefix(got, textfmt.Count(c.rows, "row")) {
				t.Errorf("it says %q", got)
			}
			if d.press("E"); !strings.HasSuffix(d.Toast.Text, string(c.focus)+"-2.csv") ||
				len(readCSV(t, want)) != len(all) {
				t.Errorf("a second export says %q: the first must stay", d.Toast.Text)
			}
		})
	}
}

// TestExportOfMeetings checks that the export of the population has each meeting once, in the columns of all series.
func TestExportOfMeetings(t *testing.T) {
	rs := sourcetest.Gossip(5, 40)
	d := open(t, 120, 40, rs, nil)
	met, most := map[[3]string]int{}, 0 // how often, by round, member and partner
	for _, r := range rs {
		if r.Points == nil || r.Points.Series != view.Partner {
			continue
		}
		for i, x := range r.Points.Values {
			if m := r.Points.Members[i]; float64(m) < x { // both members report it
				met[[3]string{textfmt.Uint(r.Points.Round), textfmt.MemberID(m), textfmt.Exact(x)}]++
				most++
			}
		}
	}
	got := 0
	all := d.panel(panel.Population).Export(d.model.Host)(d.Shown)
	for _, r := range all {
		if len(r) != len(all[0]) {
			t.Fatalf("%v below %v", r, all[0])
		}
		if r[0] != view.Partner {
			continue
		}
		k := [3]string{r[2], r[1], r[6]}
		if met[k]--; met[k] < 0 || r[3] != r[2] || r[5] != r[6] || r[7] != r[6] || r[4] != "1" {
			t.Errorf("%v is not a meeting, or exported too often", r)
		}
		got++
	}
	if got != most || got < 40 {
		t.Errorf("%d of %d meetings", got, most)
	}
	for _, r := range d.panel(panel.Replicas).Export(d.model.Host)(d.Shown) {
		if r[0] == view.Partner {
			t.Fatalf("the panel without meetings exports %v", r)
		}
	}
}

// TestExportIsExact checks that the numbers in the file equal those of the log bit for bit.
func TestExportIsExact(t *testing.T) {
	rs := sourcetest.Run(3, 50)
	d := open(t, 120, 40, rs, nil)
	got := map[string]string{}
	for _, r := range panel.SeriesRows(d.Shown, "loss") {
		got[r[1]+"@"+r[2]] = r[6]
	}
	n := 0
	for _, r := range rs {
		if r.Points == nil || r.Points.Series != "loss" {
			continue
		}
		for i, x := range r.Points.Values {
			n++
			if y, err := strconv.ParseFloat(got[textfmt.MemberID(r.Points.Members[i])+"@"+textfmt.Uint(r.Points.Round)],
				64); err != nil || y != x {
				t.Fatalf("member %d, round %d: %g is exported as %g", i, r.Points.Round, x, y)
			}
		}
	}
	if n != 150 {
		t.Fatalf("%d points", n)
	}
}

// TestExportOfThinnedSeries checks that a row of merged points has their rounds and their number.
func TestExportOfThinnedSeries(t *testing.T) {
	v := view.New()
	for _, r := range sourcetest.Run(64, 3000) {
		v.Apply(r)
	}
	points, last := 0, uint64(0)
	for _, r := range panel.SeriesRows(v, "loss")[1:] {
		if r[1] != "all" {
			break
		}
		n, _ := strconv.Atoi(r[4])
		from, _ := strconv.ParseUint(r[2], 10, 64)
		to, _ := strconv.ParseUint(r[3], 10, 64)
		if from <= last && last > 0 || to < from {
			t.Fatalf("rounds %d to %d follow %d", from, to, last)
		}
		points, last = points+n, to
	}
	if points != 64*3000 || last != 3000 {
		t.Errorf("rows stand for %d points up to round %d", points, last)
	}
}

func TestExportRefusals(t *testing.T) {
	d := open(t, 120, 40, sourcetest.Run(3, 50), func(o *panel.Options) { o.Session = "/x/gone" })
	d.Focus = panel.Fleet
	if d.press("E"); !strings.Contains(d.Toast.Text, "has no export") {
		t.Errorf("it says %q", d.Toast.Text)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	d.Focus, d.Opt.Session = panel.Loss, "/x/"+strings.Repeat("long", 100)
	if d.press("E"); !strings.HasPrefix(d.Toast.Text, "export: ") {
		t.Errorf("a file that cannot be made says %q", d.Toast.Text)
	}
	empty := open(t, 120, 40, sourcetest.Run(3, 50)[:2], nil)
	for _, p := range empty.panels {
		if p.Export == nil {
			continue
		}
		empty.Toast = panel.Toast{}
		empty.Focus = p.ID
		if len(p.Export(empty.model.Host)(empty.Shown)) > 1 {
			continue
		}
		if empty.press("E"); !strings.HasSuffix(empty.Toast.Text, "yet, no file was written") {
			t.Errorf("%s without a row says %q", p.ID, empty.Toast.Text)
		}
	}
	none := openLibrary(t, 120, 36, &fakeLibrary{}, "tab E")
	if none.shows("overlay: no data to export yet, no file was written"); none.Focus != panel.Overlay {
		t.Errorf("the focus is on %s", none.Focus)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
}
