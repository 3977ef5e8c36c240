package archive

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"brood/models/usererr"
	"brood/runtime/event"
	"brood/runtime/session"
	"brood/runtime/view"
)

// queriedRows returns three runs, a run that is not read yet, and a folder.
func queriedRows() []Row {
	row := func(name, algorithm, eta string, score float64, tags ...string) Row {
		return Row{Entry{Name: name}, &Summary{
			Info: session.Info{Algorithm: algorithm, Model: "mlp", Data: "mnist", Round: 100, TestRound: 100,
				Phase: event.Finished, Started: time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC),
				Score: &session.Scored{Key: "test_error", Percent: true, Value: score}, About: session.About{Tags: tags}},
			Seconds: 90, Members: 4, Series: view.CentreLoss, Loss: 0.5, Curve: []float64{0.5},
			Figures: map[string]float64{"train_loss": 0.25},
			Settings: []Setting{{"algorithm", algorithm, false, ""}, {"workers", "1 → 3 @5", false, ""},
				{"eta", eta, false, ""}},
		}}
	}
	late := row("late", "dp-sgd", "cosine:0.1..0.01", 9, "best")
	late.Started = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	return []Row{row("2026-11-20-a", "parle", "0.1 → 0.05 @40", 2.5, "best", "old"), row("b", "parle", "0.1", 3.5),
		late, {Entry: Entry{Name: "unread"}}, {Entry{Name: "sweep-parle", Folder: "sweep"}, &Summary{Runs: 2}}}
}

func TestQuery(t *testing.T) {
	for query, want := range map[string]string{
		"":                                "abcuf",
		"parle":                           "abf", // a word also finds a folder
		"PARLE finished":                  "ab",
		"algorithm=parle":                 "ab",
		"algorithm:sgd":                   "c",
		"algorithm!=parle":                "c",
		"eta<0.1":                         "a", // the value at the end of the run
		"eta<=0.1":                        "ab",
		"eta=0.10":                        "b",
		"eta:cosine":                      "c",
		"test_error<3%":                   "a",
		"test>=3.5":                       "bc",
		"train_loss=0.25":                 "abc",
		"test_rmse<9":                     "", // no run has it
		"eta=0.1,workers=3":               "b",
		"tag:best,old":                    "", // a comma in a value
		"workers=3 members>3":             "abc",
		"tag:best algorithm=parle":        "a",
		"tags=old":                        "a",
		"tag:o":                           "a",
		"time>1m time<=90":                "abc",
		"date=2026-11-20":                 "ab",
		"date>2026-11":                    "c",
		"date<=2026-11-20 Eta:":           "ab", // a comparison without a value is being typed
		"mlp:16":                          "",   // a word with a colon
		"algorithm=parle eta<0.1 tag:bes": "a",
	} {
		q, err := ParseQuery(query)
		if err != nil {
			t.Errorf("%q: %v", query, err)
			continue
		}
		got := ""
		for i, r := range queriedRows() {
			if q.Match(r) {
				got += string("abcuf"[i])
			}
		}
		if got != want {
			t.Errorf("%q selects %q, want %q", query, got, want)
		}
	}
}

func TestQueryErrors(t *testing.T) {
	for query, want := range map[string]string{
		"parle algoritm=x": `algoritm=x: no column, setting or metric is called "algoritm" (did you mean algorithm?)`,
		"loss<1": "loss<1: no column, setting or metric is called \"loss\" (did you mean centre_loss, test_loss, " +
			"train_loss or on-loss?)",
		"zzz>1":          `zzz>1: no column, setting or metric is called "zzz"`,
		"eta<fast":       "eta<fast: write a number after eta<",
		"time<fast":      "time<fast: write seconds or a duration such as 5m after time<",
		"date>yesterday": "date>yesterday: write a date such as 2026-11-29 after date>",
		"model<mlp":      "model<mlp: model is text: write model=mlp or model:mlp",
	} {
		if _, err := ParseQuery(query); err == nil || err.Error() != want || !usererr.Is(err) {
			t.Errorf("%q: %v, want %s", query, err, want)
		}
	}
}

func TestComplete(t *testing.T) {
	for text, want := range map[string]string{
		"al": "algorithm=", "parle test_e": "test_error=", "et": "eta=", "algorithm=": "algorithm=dp-sgd algorithm=parle",
		"algorithm=p": "algorithm=parle", "nothing=": "", "zz": "",
	} {
		if got := strings.Join(Complete(queriedRows(), text), " "); got != want {
			t.Errorf("%q completes to %q, want %q", text, got, want)
		}
	}
}

// TestDifferingColumns: a setting is a column if the listed runs differ in it and no other column shows it.
func TestDifferingColumns(t *testing.T) {
	rows := queriedRows()
	rows[0].Settings = append(rows[0].Settings, Setting{"rho", "1", true, ""}, Setting{"gamma", "2", false, ""})
	rows[1].Settings = append(rows[1].Settings, Setting{"rho", "1", true, ""}, Setting{"limit", "9 rounds", false, ""})
	var got []string
	for _, c := range Differing(rows) {
		got = append(got, c.Name)
	}
	if !slices.Equal(got, []string{"eta", "gamma"}) { // rho has its default wherever it exists
		t.Errorf("columns %v, want eta and gamma", got)
	}
	names := func(cols []Column) (out string) {
		for _, c := range cols {
			out += " " + c.Name
		}
		return out
	}
	if got := names(Chosen([]string{"test", "of another version", KnobColumns, "train_loss", "batch"}, rows)); got !=
		" test eta gamma train_loss batch" {
		t.Errorf("chosen%s", got)
	}
	if got := names(Chosen(nil, rows)); !strings.HasPrefix(got, " state algorithm") || strings.Contains(got, "size") {
		t.Errorf("the usual columns are%s", got)
	}
}

// TestLossText checks that the figure of a run without a model is not shown as a loss.
func TestLossText(t *testing.T) {
	c, _ := Lookup("centre_loss")
	rows := queriedRows()
	rows[1].Series, rows[1].Loss = "loss", 0
	rows[2].Objective = "python3 walk.py"
	for i, want := range []string{"0.5000", "distance 0", "–", "", ""} {
		if got := c.Cell(rows[i]); got != want {
			t.Errorf("%s has %q, want %q", rows[i].Name, got, want)
		}
	}
}

// TestCompare: rows without a value come last in both orders.
func TestCompare(t *testing.T) {
	rows := queriedRows()
	rows[1].Score = &session.Scored{Key: "test_r2", More: true, Value: 7}
	rows[2].Loss = math.NaN()
	rows[0].Loss = 0.75
	for _, x := range []struct {
		column  string
		reverse bool
		want    string
	}{{"test", false, "bacuf"}, {"test", true, "cabuf"}, {"centre_loss", false, "bacuf"}, {"centre_loss", true, "abcuf"},
		{"algorithm", false, "cabuf"}, {"algorithm", true, "abcuf"}, {"date", false, "cabuf"}, {"date", true, "abcuf"}} {
		at := []int{0, 1, 2, 3, 4}
		c, _ := Lookup(x.column)
		slices.SortStableFunc(at, func(i, j int) int {
			if i > 2 || j > 2 { // the list sorts folders itself
				return i - j
			}
			return c.Compare(rows[i], rows[j], x.reverse)
		})
		got := ""
		for _, i := range at {
			got += string("abcuf"[i])
		}
		if got != x.want {
			t.Errorf("by %s, reverse %v: %s, want %s", x.column, x.reverse, got, x.want)
		}
	}
}
