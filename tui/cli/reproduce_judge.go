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

// judgement is a claim beside what was measured.
type judgement struct {
	preset    string
	claim     presets.Claim
	published *float64         // of the form that ran
	measured  presets.Estimate // of Value NaN where it is not known
	finding   presets.Finding  // without a verdict where something was not measured
	lacks     []string         // the presets that it compares with, and of which nothing was measured
	seeds     int
	missed    int // of them, runs that missed the target that the metric is about
	seconds   float64
}

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
					j.lacks = append(j.lacks, other)
				}
			}
			if len(x) > 0 && (len(j.lacks) == 0 || c.Ratio == nil && c.Slope == nil) {
				j.measured = c.Measured(x, others)
			}
			if len(x) > 0 && len(j.lacks) == 0 {
				j.finding = c.Judge(x, others)
			}
			out = append(out, j)
		}
	}
	return out
}

// known is whether anything was measured of the claim.
func (j judgement) known() bool { return j.measured.Value == j.measured.Value }

func (j judgement) metric() string {
	switch c := j.claim; {
	case c.Slope != nil:
		return "slope of " + c.Metric
	case c.Ratio != nil:
		return "ratio of " + c.Metric
	}
	return j.claim.Metric + " " + presets.Metrics[j.claim.Metric]
}

// verdict is what is said of the claim: where too few seeds decide nothing, with how many of them could.
func (j judgement) verdict() string {
	said := j.verdictAlone()
	if j.finding.Verdict == presets.Undecided && j.seeds < j.claim.Seeds {
		said += ": " + presets.SeedsText(j.claim.Seeds) + " seeds could decide it"
	}
	return said
}

func (j judgement) verdictAlone() string {
	switch {
	case j.finding.Verdict != "":
		return string(j.finding.Verdict)
	case len(j.lacks) > 0 && j.seeds > 0:
		return unmeasured + ": " + strings.Join(j.lacks, ", ")
	}
	return unmeasured
}

const unmeasured = "not measured"

// numeral is a number as a table has it, or a dash.
func numeral(format string, x float64) string {
	if x != x || math.IsInf(x, 0) {
		return "–"
	}
	return fmt.Sprintf(format, x)
}

// figures are the cells published, measured and standard error.
func (j judgement) figures() []string {
	published := "–"
	if j.published != nil {
		published = fmt.Sprintf("%g", *j.published)
	}
	measured := numeral("%.4g", j.measured.Value)
	if j.missed > 0 {
		measured = fmt.Sprintf("%d missed", j.missed)
	}
	return []string{published, measured, numeral("%.2g", j.measured.Error)}
}

// judged is the table of all claims. What a claim states is of the short form: full ones stand beside what was
// published, and are not judged. t is how many standard errors measured and stated are apart, of how many decide; takes
// is by how many seeds that would be decided with a chance of 80 %.
func (w *study) judged(all map[string]sweep.Result) *table {
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

// tally counts what is said of the claims of each study, with a row for all of them. Accounting stands apart: it is no
// evidence.
type tally struct {
	table *table
	all   map[string]int
}

// Of claims that hold, those that compare with another preset, or presets, are told by whether that has to be worse, or
// what they state has a margin, which whoever states it chose; both from those that are a bound, which show that a
// preset trains, and hardly ever more.
const (
	inOrder  = "holds as an order"
	inMargin = "holds within a margin"
	bounded  = "holds by a bound"
)

// verdicts are the columns of a tally.
var verdicts = []string{inOrder, inMargin, bounded, string(presets.Contradicts), string(presets.Undecided), unmeasured,
	string(presets.Accounting)}

func newTally() *tally {
	t := &tally{table: newTable("study", ">claims"), all: map[string]int{}}
	for _, v := range verdicts {
		t.table.column(">" + v)
	}
	return t
}

// verdictsOf is how many claims have each verdict.
func verdictsOf(claims []judgement) map[string]int {
	of := map[string]int{}
	for _, j := range claims {
		said := j.verdictAlone()
		switch {
		case strings.HasPrefix(said, unmeasured):
			said = unmeasured
		case said == string(presets.Holds) && j.claim.Below != "":
			said = inOrder
		case said == string(presets.Holds) && len(j.claim.Others()) > 0:
			said = inMargin
		case said == string(presets.Holds):
			said = bounded
		}
		of[said]++
	}
	return of
}

// add is a study, with how many of its claims have each verdict.
func (t *tally) add(study string, of map[string]int) {
	for v, n := range of {
		t.all[v] += n
	}
	t.row(study, of)
}

// sumRow is what the row for all studies is called.
const sumRow = "all"

// whole is the table, with its sum.
func (t *tally) whole() *table {
	t.row(sumRow, t.all)
	return t.table
}

func (t *tally) row(name string, of map[string]int) {
	sum, cells := 0, []string{}
	for _, v := range verdicts {
		sum += of[v]
		cells = append(cells, fmt.Sprint(of[v]))
	}
	t.table.row(append([]string{name, fmt.Sprint(sum)}, cells...)...)
}

// evidence are the cells t, needed and degrees of freedom, with dashes where nothing scatters, or of a single seed, and
// how many seeds it takes.
func (j judgement) evidence() []string {
	f, takes := j.finding, "–"
	if f.Takes > 0 {
		takes = presets.SeedsText(f.Takes)
	}
	if f.Verdict == "" || math.IsInf(f.T, 0) || math.IsInf(f.Needed, 0) {
		return []string{"–", "–", "–", takes}
	}
	return []string{numeral("%.1f", f.T), numeral("%.1f", f.Needed), numeral("%.1f", f.Freedom), takes}
}

// tell writes the claims as objects, one a line.
func (w *study) tell(to io.Writer, all map[string]sweep.Result) {
	enc := json.NewEncoder(to)
	for _, j := range w.judgements(all) {
		line := map[string]any{"event": "claim", "study": w.name, "preset": j.preset, "source": j.claim.Source,
			"metric": j.metric(), "published": j.published,
			"measured": finite(j.measured.Value), "standard_error": finite(j.measured.Error), "seeds": j.seeds, "missed": j.missed, "seconds": j.seconds}
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

// soFar is the table of the claims that something is known of.
func (w *study) soFar(rows int) *table {
	out := newTable("preset", "metric", ">published", ">measured", ">± s.e.", "")
	for _, j := range w.judgements(w.measured()) {
		if !j.known() || len(out.rows) > rows {
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

// markdown is the table for a document.
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
