package export

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"

	"brood/models/engine"
	"brood/optim/collective"
	"brood/runtime/axis"
	"brood/runtime/event"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
)

// maker writes a log of a dp-sgd run with commits of two rounds and a loss of each member in each round.
type maker struct {
	out     []event.Record
	at      uint64
	members int
}

func (m *maker) put(r event.Record) {
	r.At = int64(1e18) + int64(len(m.out))*1e9
	m.out = append(m.out, r)
}

func (m *maker) plan(from event.Source, at uint64, algorithm string, members int, edits ...event.Edit) {
	m.at, m.members = at, members
	m.put(event.Record{Plan: &event.Plan{
		Epoch:     uint32(len(m.out)),
		At:        at,
		From:      from,
		Algorithm: algorithm,
		New:       collective.Place(collective.IDs(members), []int{0}),
		Timeline:  edits,
	}})
}

// values records the losses of a round, multiplied by scale.
func (m *maker) values(round uint64, scale float64) {
	x := make([]float64, m.members)
	for i := range x {
		x[i] = scale * float64(i+1) / float64(round)
	}
	m.put(event.Record{Points: &event.Points{Round: round, Series: "loss", Members: collective.IDs(m.members), Values: x}})
}

func (m *maker) commit(scale float64) {
	m.values(m.at+1, scale)
	m.values(m.at+2, scale)
	m.at += 2
	if m.at%4 == 0 {
		m.put(event.Record{Evaluation: &event.Evaluation{Round: m.at, TestError: 100 / float64(m.at), TestLoss: math.NaN()}})
	}
	m.put(event.Record{Commit: &event.Commit{To: m.at, Rounds: 2, Nanos: 1e9, Sent: map[collective.Op]int64{"sum": 200},
		Progress: event.Progress{Rounds: m.at, Steps: 3 * m.at, Samples: 10 * m.at, Epochs: float64(m.at) / 100}}})
}

func begin() *maker {
	m := &maker{}
	m.put(event.Record{Config: &event.Config{
		Version: 1,
		Model:   "mlp",
		Data:    "glyphs",
		Seed:    7,
		Limit:   event.Limit{Rounds: 100},
	}})
	m.plan(event.Fresh, 0, "dp-sgd", 4, event.Edit{Algorithm: "dp-sgd", Knob: "eta", Expr: "linear:0.4..0@4", By: "flag"})
	return m
}

func (m *maker) write(t *testing.T, dir string) string {
	t.Helper()
	sourcetest.Write(t, dir, m.out...)
	return dir
}

func (m *maker) run(t *testing.T) *Run {
	t.Helper()
	r, err := Read(m.write(t, t.TempDir()+"/a"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// cells returns the table as CSV, by column.
func cells(t *testing.T, table *Table) (rows []map[string]string) {
	t.Helper()
	var b bytes.Buffer
	if err := CSV(&b, table); err != nil {
		t.Fatal(err)
	}
	all, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range all[1:] {
		row := map[string]string{}
		for i, name := range all[0] {
			row[name] = line[i]
		}
		rows = append(rows, row)
	}
	return rows
}

func want(t *testing.T, row map[string]string, cells map[string]string) {
	t.Helper()
	for name, x := range cells {
		if got, ok := row[name]; got != x || !ok {
			t.Errorf("round %s: %s is %q, want %q", row["round"], name, got, x)
		}
	}
}

// TestRounds: a row has the measurements of its round and the knobs in effect, and nothing else.
func TestRounds(t *testing.T) {
	m := begin()
	for range 4 {
		m.commit(1)
	}
	rows := cells(t, Rounds([]*Run{m.run(t)}))
	if len(rows) != 8 {
		t.Fatalf("%d rows of 8 rounds", len(rows))
	}
	want(t, rows[0], map[string]string{"session": "a", "round": "1", "step": "3", "sample": "10", "epoch": "0.01",
		"second": "0.5", "byte": "100",
		"algorithm": "dp-sgd", "members": "4", "workers": "1", "loss": "2.5", "loss.min": "1", "loss.max": "4",
		"test.error": "", "test.loss": "",
		"knob.eta": "0.4", "setting.seed": "7", "setting.model": "mlp", "time": "2001-09-09T01:46:42Z"})
	want(t, rows[3], map[string]string{"round": "4", "test.error": "25", "test.loss": "NaN",
		"knob.eta": "0.09999999999999998"})
	want(t, rows[7], map[string]string{"round": "8", "second": "4", "loss": "0.3125", "knob.eta": "0"})
}

// TestGoneBack: rounds after a rollback have their new values, and rounds after the last commit are absent.
func TestGoneBack(t *testing.T) {
	m := begin()
	m.commit(1)
	m.commit(1)
	m.values(5, 1) // of a grant that is aborted
	m.plan(event.Saved, 2, "dp-sgd", 4)
	m.commit(10)
	m.plan(event.Workers, 4, "parle", 2)
	m.commit(100)
	m.values(7, 1)
	r := m.run(t)
	rows := cells(t, Rounds([]*Run{r}))
	if len(rows) != 6 {
		t.Fatalf("%d rows of 6 rounds", len(rows))
	}
	for i, x := range []string{"1", "0.5", "3.3333333333333335", "2.5", "20", "16.666666666666668"} {
		want(t, rows[i], map[string]string{"round": strconv.Itoa(i + 1), "loss.min": x})
	}
	want(t, rows[3], map[string]string{"algorithm": "dp-sgd", "members": "4", "knob.rho": ""})
	want(t, rows[4], map[string]string{"algorithm": "parle", "members": "2", "knob.rho": "1"})
	if rows[2]["knob.eta"] == rows[1]["knob.eta"] {
		t.Error("an edit that was taken back still governs")
	}
	long := cells(t, Members([]*Run{r}))
	if len(long) != 4*4+2*2+2 {
		t.Errorf("%d values of members", len(long))
	}
	for _, row := range long {
		if whole := row["series"] == "test.error" || row["series"] == "test.loss"; whole != (row["member"] == "") {
			t.Errorf("a row of %s has member %q", row["series"], row["member"])
		}
	}
}

// TestFiguresEqualCompare: the values equal those of compare, on all axes.
func TestFiguresEqualCompare(t *testing.T) {
	m := begin()
	for range 50 {
		m.commit(1)
	}
	r := m.run(t)
	rows := cells(t, Rounds([]*Run{r}))
	for a, column := range axis.Names {
		for _, series := range []string{"loss", view.TestError} {
			points := r.Points(series, axis.Axis(a), 1000)
			if len(points) < 20 {
				t.Fatalf("%d points of %s", len(points), series)
			}
			for _, p := range points {
				row := rows[p.Round-1]
				x, _ := strconv.ParseFloat(row[column], 64)
				y, err := strconv.ParseFloat(row[series], 64)
				if err != nil || y != p.Mean() || math.Abs(x-p.X) > 0.5 && a != int(axis.Seconds) ||
					a == int(axis.Seconds) && x != p.X {
					t.Errorf("%s by %s at round %d: %v at %v, compare has %v at %v", series, column, p.Round, y, x, p.Mean(), p.X)
				}
			}
		}
	}
}

// TestJSONLines: JSON lines omit values that were not measured, and have null for values that are not finite.
func TestJSONLines(t *testing.T) {
	m := begin()
	m.commit(1)
	m.commit(1)
	var b bytes.Buffer
	if err := JSONLines(&b, Rounds([]*Run{m.run(t)})); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	var first, last map[string]any
	if err := json.Unmarshal([]byte(lines[0]), &first); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(lines[3]), &last); err != nil {
		t.Fatal(err)
	}
	if _, ok := first[view.TestError]; ok || first["loss"] != 2.5 || first["round"] != 1.0 {
		t.Errorf("the first line is %s", lines[0])
	}
	if x, ok := last[view.TestLoss]; !ok || x != nil || last[view.TestError] != 25.0 {
		t.Errorf("the last line is %s", lines[3])
	}
	if !strings.HasPrefix(lines[0], `{"session":"a","round":1,`) {
		t.Errorf("keys are in another order: %s", lines[0])
	}
}

// TestColumnsAreNamedOnce: column names are unique, whatever the series names of an algorithm.
func TestColumnsAreNamedOnce(t *testing.T) {
	m := begin()
	m.put(event.Record{Points: &event.Points{
		Round:   1,
		Series:  "time",
		Members: collective.IDs(2),
		Values:  []float64{3, 5},
	}})
	m.commit(1)
	table, seen := Rounds([]*Run{m.run(t)}), map[string]bool{}
	for _, c := range table.Columns {
		if seen[c.Name] {
			t.Errorf("two columns are called %s", c.Name)
		}
		seen[c.Name] = true
	}
	want(t, cells(t, table)[0], map[string]string{"series.time": "4", "series.time.min": "3",
		"time": "2001-09-09T01:46:42Z"})
}

// TestSeveral: a table of several sessions has the columns of all, with empty cells for missing measurements.
func TestSeveral(t *testing.T) {
	one, two := begin(), begin()
	one.commit(1)
	two.put(event.Record{Points: &event.Points{
		Round:   1,
		Series:  "centre.loss",
		Members: []engine.Member{view.Whole},
		Values:  []float64{3},
	}})
	two.commit(1)
	rows := cells(t, Rounds([]*Run{one.run(t), two.run(t)}))
	if len(rows) != 4 || rows[0]["centre.loss"] != "" || rows[2]["centre.loss"] != "3" {
		t.Errorf("rows %v", rows)
	}
	if _, err := Read(begin().write(t, t.TempDir()+"/none")); err == nil ||
		!strings.Contains(err.Error(), "holds no committed round: there is nothing to export") {
		t.Errorf("a session without a round: %v", err)
	}
}
