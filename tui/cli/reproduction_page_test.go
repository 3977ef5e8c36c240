package cli

import (
	"encoding/csv"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"brood/presets"
	"brood/runtime/sweep"
)

var updatePage = flag.Bool("update-page", false, "write the tables of docs/reproduction.md anew from docs/results")

const page = "../../docs/reproduction.md"

// tallyHeading is the heading of the section with the tally over all studies.
const tallyHeading = "All studies"

var tableOf = regexp.MustCompile(`(?m)(?:^\|.*\n)+`)

// section returns the byte range of the section with this heading, which includes the heading. It returns -1, -1 if the
// text has no such section.
func section(text, heading string) (from, to int) {
	from = strings.Index("\n"+text, "\n## "+heading+"\n")
	if from < 0 {
		return -1, -1
	}
	if next := strings.Index(text[from:], "\n## "); next >= 0 {
		return from, from + next + 1
	}
	return from, len(text)
}

// markdown formats the table in Markdown. Columns keep their alignment.
func markdown(t *table) string {
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(t.rows[0])
	rule := make([]string, len(t.right))
	for i, right := range t.right {
		if rule[i] = "---"; right {
			rule[i] = "---:"
		}
	}
	line(rule)
	for _, r := range t.rows[1:] {
		line(r)
	}
	return b.String()
}

// set sets a metric of a seed in a result.
func set(of sweep.Result, metric string, seed int, x float64) {
	if of.Figures[metric] == nil {
		of.Figures[metric] = map[int]float64{}
	}
	of.Figures[metric][seed] = x
}

// recordedStudy returns a study from docs/results: the runs.csv that brood reproduce wrote to the directory of its
// sessions.
func recordedStudy(t *testing.T, name string) (*study, map[string]sweep.Result) {
	t.Helper()
	file, err := os.Open(filepath.Join("../../docs/results", name+".csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	w, all := &study{name: name}, map[string]sweep.Result{}
	for _, row := range rows[1:] {
		one, ok := all[row[0]]
		if !ok {
			p, err := presets.Load(row[0])
			if err != nil {
				t.Fatal(err)
			}
			w.presets = append(w.presets, p)
			one = sweep.Result{Figures: map[string]map[int]float64{}}
		}
		seed, err := strconv.Atoi(row[1])
		if err != nil {
			t.Fatal(err)
		}
		for i, metric := range rows[0] {
			if presets.Metrics[metric] == "" || row[i] == "" {
				continue
			}
			x, err := strconv.ParseFloat(row[i], 64)
			if err != nil {
				t.Fatal(err)
			}
			set(one, metric, seed, x)
		}
		if _, ok := one.Figures["samples"][seed]; !ok { // rows from before this metric
			speed, seconds := one.Figures["samples_per_s"][seed], one.Figures["seconds"][seed]
			set(one, "samples", seed, speed*seconds)
		}
		one.Seconds = presets.Sample(one.Figures["seconds"]).Mean()
		all[row[0]] = one
	}
	return w, all
}

// TestReproductionPage checks that the page has a section for every study with claims, that each table equals the
// judgement of the recorded runs without checks and accounting, and that the tally is their sum.
func TestReproductionPage(t *testing.T) {
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text := string(content)
	studies, err := presets.Studies()
	if err != nil {
		t.Fatal(err)
	}
	counts := newTally()
	hold := func(name, want string) {
		from, to := section(text, name)
		if from < 0 {
			t.Errorf("%s has no section ## %s", page, name)
			return
		}
		at := tableOf.FindStringIndex(text[from:to])
		if at == nil {
			t.Errorf("the section %s of %s has no table", name, page)
			return
		}
		if got := text[from+at[0] : from+at[1]]; got != want && !*updatePage {
			t.Errorf("the table of %s is not what the judge says of the runs in docs/results (go test ./tui/cli -run "+
				"TestReproductionPage -update-page):\n%s", name, want)
		}
		text = text[:from+at[0]] + want + text[from+at[1]:]
	}
	for _, name := range slices.Sorted(maps.Keys(studies)) {
		w, all := recordedStudy(t, name)
		seeds := 0
		for _, of := range all {
			for _, x := range of.Figures {
				seeds = max(seeds, len(x))
			}
		}
		judged := w.judgements(all)
		counts.add(name, judged)
		if command := fmt.Sprintf("`brood reproduce %s --seeds %d`", name, seeds); !strings.Contains(text, command) {
			t.Errorf("%s does not say that %s made the rows of %s", page, command, name)
		}
		claims := slices.DeleteFunc(judged, func(j presets.Judgement) bool {
			return j.Check || j.Finding.Verdict == presets.Accounting
		})
		if len(claims) > 0 {
			hold(name, markdown(w.claimTable(claims)))
		}
	}
	hold(tallyHeading, markdown(counts.withTotal()))
	if want := counts.adjusted(); !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
		t.Errorf("%s does not say: %s", page, want)
	}
	if *updatePage {
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
