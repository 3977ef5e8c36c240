package cli

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"

	"brood/presets"
	"brood/runtime/sweep"
)

// judgements judges every claim of the study, in the order of the presets and their claims. all is keyed by preset
// name.
func (w *study) judgements(all map[string]sweep.Result) []presets.Judgement {
	measured := map[string]presets.Measured{}
	for name, r := range all {
		measured[name] = presets.Measured{Figures: r.Figures, Seconds: r.Seconds}
	}
	return presets.Judge(w.presets, measured, w.full)
}

// formatFinite formats x, or returns a dash if it is NaN or infinite.
func formatFinite(format string, x float64) string {
	if x != x || math.IsInf(x, 0) {
		return "–"
	}
	return fmt.Sprintf(format, x)
}

// figureCells returns the table cells published, measured and standard error.
func figureCells(j presets.Judgement) []string {
	published := "–"
	if j.Published != nil {
		published = fmt.Sprintf("%g", *j.Published)
	}
	measured := formatFinite("%.4g", j.Measured.Value)
	if j.Missed > 0 {
		measured = fmt.Sprintf("%d missed", j.Missed)
	}
	return []string{published, measured, formatFinite("%.2g", j.Measured.Error)}
}

// claimTable returns the table of judged claims and checks. Conditions apply to the short form; figures of the full
// form are only compared with the published numbers and not judged. Column t is the distance between the measured and
// the stated value in standard errors. Columns Holm and BH are p, adjusted over the claims of the table. Column takes
// is the number of seeds that decide the claim with a probability of 80 %.
func (w *study) claimTable(judgements []presets.Judgement) *table {
	heads := []string{"preset", "source", "metric", ">published", ">measured", ">± s.e.", ">seeds", ">time"}
	if !w.full {
		heads = append(heads, "stated beforehand", "test", ">t", ">d.f.", ">p", ">Holm", ">BH", ">takes", "tuned",
			"verdict")
	}
	out := newTable(heads...)
	for _, j := range judgements {
		row := append([]string{j.Preset, j.Claim.Source, j.Metric()}, figureCells(j)...)
		row = append(row, fmt.Sprint(j.Seeds), fmt.Sprintf("%.0f s", j.Seconds))
		if !w.full {
			row = append(row, j.Claim.States())
			row = append(append(row, evidenceCells(j)...), j.Tuned.Text(), j.VerdictText())
		}
		out.row(row...)
	}
	return out
}

// tally is a table of the number of claims and checks with each outcome: a row for each study and a total. Accounting
// has its own column, since a byte count that equals its formula is no evidence.
type tally struct {
	table *table
	all   []presets.Judgement
}

func newTally() *tally {
	t := &tally{table: newTable("study", ">stated")}
	for _, v := range presets.Outcomes {
		t.table.column(">" + v)
	}
	return t
}

func (t *tally) add(study string, judged []presets.Judgement) {
	t.all = append(t.all, judged...)
	t.row(study, judged)
}

// sumRow is the name of the row of totals.
const sumRow = "all"

// withTotal appends the row of totals and returns the table. Call it once, after the last add.
func (t *tally) withTotal() *table {
	t.row(sumRow, t.all)
	return t.table
}

// adjusted returns how many decided claims of all studies remain decided if their p-values are adjusted together.
func (t *tally) adjusted() string {
	all := slices.Clone(t.all)
	presets.Adjust(all)
	alone, holm, bh := presets.Decided(all)
	return fmt.Sprintf("Of %d decided claims %d are decided with p adjusted over all studies by Holm, %d by Benjamini "+
		"and Hochberg.", alone, holm, bh)
}

func (t *tally) row(name string, judged []presets.Judgement) {
	counts, cells := presets.Count(judged), []string{name, fmt.Sprint(len(judged))}
	for _, v := range presets.Outcomes {
		cells = append(cells, fmt.Sprint(counts[v]))
	}
	t.table.row(cells...)
}

// evidenceCells returns the table cells test, t, degrees of freedom, the p-values and takes. All but takes are dashes
// if the values have no scatter or there is only one seed.
func evidenceCells(j presets.Judgement) []string {
	f, takes := j.Finding, "–"
	if f.SeedsNeeded > 0 {
		takes = presets.SeedsText(f.SeedsNeeded)
	}
	if f.Verdict == "" || math.IsInf(f.T, 0) || math.IsInf(f.Needed, 0) {
		return []string{"–", "–", "–", "–", "–", "–", takes}
	}
	return []string{cmp.Or(string(f.Test), "–"), formatFinite("%.1f", f.T), formatFinite("%.1f", f.Freedom),
		formatFinite("%.2g", f.P), formatFinite("%.2g", f.Holm), formatFinite("%.2g", f.BH), takes}
}

// writeJSON writes one JSON object a line for each claim.
func (w *study) writeJSON(to io.Writer, all map[string]sweep.Result) {
	for _, j := range w.judgements(all) {
		line := map[string]any{
			"event":          "claim",
			"study":          w.name,
			"preset":         j.Preset,
			"source":         j.Claim.Source,
			"metric":         j.Metric(),
			"published":      j.Published,
			"measured":       finite(j.Measured.Value),
			"standard_error": finite(j.Measured.Error),
			"seeds":          j.Seeds,
			"missed":         j.Missed,
			"seconds":        j.Seconds,
		}
		if !w.full {
			line["stated"], line["check"], line["verdict"] = j.Claim.States(), j.Check, j.Outcome()
			if j.Budget != "" {
				line["budget"] = j.Budget
			}
			if len(j.Notes) > 0 {
				line["notes"] = j.Notes
			}
			if j.Tuned != nil {
				line["tuned"] = map[string]any{"by": j.Tuned.By, "trials": j.Tuned.Trials}
			}
			if f := j.Finding; f.Verdict != "" {
				if line["seeds_needed"] = nil; f.SeedsNeeded > 0 {
					line["seeds_needed"] = f.SeedsNeeded
				}
				line["test"], line["t"], line["degrees_of_freedom"] = f.Test, finite(f.T), finite(f.Freedom)
				line["p"], line["p_holm"], line["p_bh"] = finite(f.P), finite(f.Holm), finite(f.BH)
			}
		}
		_ = objects(to, line)
	}
}

// progressTable returns the claims that have a measured value while the study runs, at most rows of them.
func (w *study) progressTable(rows int) *table {
	out := newTable("preset", "metric", ">published", ">measured", ">± s.e.", "")
	for _, j := range w.judgements(w.measured()) {
		if !j.HasValue() || len(out.rows) > rows {
			continue
		}
		verdict := ""
		if !w.full && j.Finding.Verdict != "" {
			verdict = j.Outcome()
		}
		out.row(append(append([]string{j.Preset, j.Metric()}, figureCells(j)...), verdict)...)
	}
	return out
}
