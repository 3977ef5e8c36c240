package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"

	"brood/presets"
	"brood/runtime/sweep"
)

// judgement compares one claim of a preset with the measured figures.
type judgement struct {
	preset    string
	claim     presets.Claim
	published *float64         // for the form that ran (full or short); nil: the source has no number
	measured  presets.Estimate // Value is NaN if unknown
	finding   presets.Finding  // Verdict is "" if a preset of the claim was not measured
	missing   []string         // presets that the claim compares with and that have no measurement
	seeds     int              // measured runs of the preset
	missed    int              // number of these runs that missed the target of the metric
	seconds   float64          // of all runs of the preset
}

// judgements judges every claim of the study, in the order of the presets and their claims. all is keyed by preset
// name.
func (w *study) judgements(all map[string]sweep.Result) (out []judgement) {
	for _, p := range w.presets {
		for _, c := range p.Claims {
			x, others := presets.Sample(all[p.Name].Figures[c.Metric]), map[string]presets.Sample{}
			j := judgement{
				preset:    p.Name,
				claim:     c,
				published: p.Published(c, w.full),
				measured:  presets.Estimate{Value: math.NaN(), Error: math.NaN()},
				seeds:     len(x),
				missed:    x.Missed(),
				seconds:   all[p.Name].Seconds,
			}
			for _, other := range c.Others() {
				if others[other] = all[other].Figures[c.Metric]; len(others[other]) == 0 {
					j.missing = append(j.missing, other)
				}
			}
			if len(x) > 0 && (len(j.missing) == 0 || c.Ratio == nil && c.Slope == nil) {
				j.measured = c.Measured(x, others)
			}
			if len(x) > 0 && len(j.missing) == 0 {
				j.finding = c.Judge(x, others)
			}
			out = append(out, j)
		}
	}
	return out
}

// hasValue reports whether the claim has a measured value.
func (j judgement) hasValue() bool { return j.measured.Value == j.measured.Value }

func (j judgement) metric() string {
	switch c := j.claim; {
	case c.Slope != nil:
		return "slope of " + c.Metric
	case c.Ratio != nil:
		return "ratio of " + c.Metric
	}
	return j.claim.Metric + " " + presets.Metrics[j.claim.Metric]
}

// verdict returns the verdict as text. If the claim is undecided and too few seeds ran, the text includes the number of
// seeds that the claim asks for.
func (j judgement) verdict() string {
	text := j.verdictAlone()
	if j.finding.Verdict == presets.Undecided && j.seeds < j.claim.Seeds {
		text += ": " + presets.SeedsText(j.claim.Seeds) + " seeds could decide it"
	}
	return text
}

// verdictAlone returns the verdict, or unmeasured with the presets that have no measurement.
func (j judgement) verdictAlone() string {
	switch {
	case j.finding.Verdict != "":
		return string(j.finding.Verdict)
	case len(j.missing) > 0 && j.seeds > 0:
		return unmeasured + ": " + strings.Join(j.missing, ", ")
	}
	return unmeasured
}

const unmeasured = "not measured"

// formatFinite formats x, or returns a dash if it is NaN or infinite.
func formatFinite(format string, x float64) string {
	if x != x || math.IsInf(x, 0) {
		return "–"
	}
	return fmt.Sprintf(format, x)
}

// figures returns the table cells published, measured and standard error.
func (j judgement) figures() []string {
	published := "–"
	if j.published != nil {
		published = fmt.Sprintf("%g", *j.published)
	}
	measured := formatFinite("%.4g", j.measured.Value)
	if j.missed > 0 {
		measured = fmt.Sprintf("%d missed", j.missed)
	}
	return []string{published, measured, formatFinite("%.2g", j.measured.Error)}
}

// claimTable returns the table of all claims. Claims state bounds for the short form; figures of the full form are only
// compared with the published numbers and not judged. Column t is the distance between the measured and the stated
// value in standard errors; needed is the distance that decides. Column takes is the number of seeds that decide the
// claim with a probability of 80 %.
func (w *study) claimTable(all map[string]sweep.Result) *table {
	heads := []string{"preset", "source", "metric", ">published", ">measured", ">± s.e.", ">seeds", ">time"}
	if !w.full {
		heads = append(heads, "stated beforehand", ">t", ">needed", ">d.f.", ">takes", "verdict")
	}
	out := newTable(heads...)
	for _, j := range w.judgements(all) {
		row := append([]string{j.preset, j.claim.Source, j.metric()}, j.figures()...)
		row = append(row, fmt.Sprint(j.seeds), fmt.Sprintf("%.0f s", j.seconds))
		if !w.full {
			row = append(row, j.claim.States())
			row = append(append(row, j.evidence()...), j.verdict())
		}
		out.row(row...)
	}
	return out
}

// tally is a table of the number of claims with each verdict: a row for each study and a total. Accounting has its own
// column, since a byte count that equals its formula is no evidence.
type tally struct {
	table *table
	all   map[string]int
}

// Claims that hold are counted by kind, from the strongest evidence to the weakest.
const (
	inOrder  = "holds as an order"     // another preset is worse
	inMargin = "holds within a margin" // compared with other presets, with a margin that the author of the claim chose
	bounded  = "holds by a bound"      // a constant bound: usually shows only that the preset trains
)

// verdicts are the columns of a tally, in order.
var verdicts = []string{inOrder, inMargin, bounded, string(presets.Contradicts), string(presets.Undecided), unmeasured,
	string(presets.Accounting)}

func newTally() *tally {
	t := &tally{table: newTable("study", ">claims"), all: map[string]int{}}
	for _, v := range verdicts {
		t.table.column(">" + v)
	}
	return t
}

// countVerdicts returns the number of claims by column of a tally.
func countVerdicts(claims []judgement) map[string]int {
	counts := map[string]int{}
	for _, j := range claims {
		verdict := j.verdictAlone()
		switch {
		case strings.HasPrefix(verdict, unmeasured):
			verdict = unmeasured
		case verdict == string(presets.Holds) && j.claim.Below != "":
			verdict = inOrder
		case verdict == string(presets.Holds) && len(j.claim.Others()) > 0:
			verdict = inMargin
		case verdict == string(presets.Holds):
			verdict = bounded
		}
		counts[verdict]++
	}
	return counts
}

// add appends the row of a study. counts is the result of countVerdicts.
func (t *tally) add(study string, counts map[string]int) {
	for v, n := range counts {
		t.all[v] += n
	}
	t.row(study, counts)
}

// sumRow is the name of the row of totals.
const sumRow = "all"

// withTotal appends the row of totals and returns the table. Call it once, after the last add.
func (t *tally) withTotal() *table {
	t.row(sumRow, t.all)
	return t.table
}

func (t *tally) row(name string, counts map[string]int) {
	sum, cells := 0, []string{}
	for _, v := range verdicts {
		sum += counts[v]
		cells = append(cells, fmt.Sprint(counts[v]))
	}
	t.table.row(append([]string{name, fmt.Sprint(sum)}, cells...)...)
}

// evidence returns the table cells t, needed, degrees of freedom and takes. The first three are dashes if the values
// have no scatter or there is only one seed.
func (j judgement) evidence() []string {
	f, takes := j.finding, "–"
	if f.Takes > 0 {
		takes = presets.SeedsText(f.Takes)
	}
	if f.Verdict == "" || math.IsInf(f.T, 0) || math.IsInf(f.Needed, 0) {
		return []string{"–", "–", "–", takes}
	}
	return []string{formatFinite("%.1f", f.T), formatFinite("%.1f", f.Needed), formatFinite("%.1f", f.Freedom), takes}
}

// writeJSON writes one JSON object a line for each claim.
func (w *study) writeJSON(to io.Writer, all map[string]sweep.Result) {
	enc := json.NewEncoder(to)
	for _, j := range w.judgements(all) {
		line := map[string]any{
			"event":          "claim",
			"study":          w.name,
			"preset":         j.preset,
			"source":         j.claim.Source,
			"metric":         j.metric(),
			"published":      j.published,
			"measured":       finite(j.measured.Value),
			"standard_error": finite(j.measured.Error),
			"seeds":          j.seeds,
			"missed":         j.missed,
			"seconds":        j.seconds,
		}
		if !w.full {
			line["stated"], line["verdict"] = j.claim.States(), j.verdictAlone()
			if f := j.finding; f.Verdict != "" {
				if line["seeds_needed"] = nil; f.Takes > 0 {
					line["seeds_needed"] = f.Takes
				}
				line["t"], line["t_needed"], line["degrees_of_freedom"] = finite(f.T), finite(f.Needed), finite(f.Freedom)
			}
		}
		_ = enc.Encode(line)
	}
}

// progressTable returns the claims that have a measured value while the study runs, at most rows of them.
func (w *study) progressTable(rows int) *table {
	out := newTable("preset", "metric", ">published", ">measured", ">± s.e.", "")
	for _, j := range w.judgements(w.measured()) {
		if !j.hasValue() || len(out.rows) > rows {
			continue
		}
		verdict := ""
		if !w.full {
			verdict = string(j.finding.Verdict)
		}
		out.row(append(append([]string{j.preset, j.metric()}, j.figures()...), verdict)...)
	}
	return out
}

// markdown formats the table in Markdown. Columns keep their alignment.
func (t *table) markdown() string {
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
