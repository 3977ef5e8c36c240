package cli

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"brood/models/usererr"
	"brood/presets"
	"brood/runtime/option"
)

// ruling is the result of a comparison.
type ruling struct {
	presets.Comparison
	samples [2]presets.Sample
	ratio   float64 // budget of the first side divided by that of the second
	verdict string
	notes   []string // on the limits of the sides, and how they were tuned
}

// compare compares both sides. It fails if one of them has no value of the metric, or if they have different data.
func (w *duel) compare() (f ruling, err error) {
	a, b := w.sides[0].one(), w.sides[1].one()
	if a == nil || b == nil {
		return f, usererr.Errorf("one side has no run that ended")
	}
	if a.Config.Data != b.Config.Data {
		return f, w.differentData(a.Config.Data, b.Config.Data)
	}
	if w.metric == "" {
		w.metric = a.Config.Score().Key
	}
	for i, x := range w.sides {
		if f.samples[i] = x.sample(w.metric); f.samples[i] == nil {
			return f, usererr.Errorf("%s has no %s: give another --metric", x.name, w.metric)
		}
	}
	f.Comparison = presets.Compare(f.samples[0], f.samples[1])
	f.ratio = w.spent(w.sides[0], w.budget) / w.spent(w.sides[1], w.budget)
	better := w.sides[1]
	if f.Difference.Value > 0 == presets.MoreIsBetter(w.metric) {
		better = w.sides[0]
	}
	switch {
	case !(math.Abs(f.ratio-1) <= equalCost(w.budget)):
		f.verdict = fmt.Sprintf("not judged: %s has %.3g × the %s of %s", w.sides[0].name, f.ratio, w.budget,
			w.sides[1].name)
	case f.Decided():
		f.verdict = better.name + " is better"
	case f.SeedsNeeded > 0:
		f.verdict = "not decided: " + presets.SeedsText(f.SeedsNeeded) + " seeds could decide it"
	default:
		f.verdict = string(presets.Undecided)
	}
	f.notes = slices.Concat(w.sides[0].notes, w.sides[1].notes,
		presets.TuningNotes(w.sides[0].tuned, w.sides[1].tuned, f.samples[0]))
	return f, nil
}

// report prints the comparison and, if file is not empty, writes the runs to it.
func (w *duel) report(file string, asJSON bool, s streams) error {
	f, err := w.compare()
	if err != nil {
		return err
	}
	if asJSON {
		err = objects(s.out, w.object(f))
	} else {
		w.print(f, s)
	}
	if err != nil || file == "" {
		return err
	}
	if err := os.WriteFile(file, w.csv(), 0o644); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}

func (w *duel) print(f ruling, s streams) {
	unit := w.metric
	if u := w.sides[0].one().Config.Unit(presets.Metrics[w.metric]); !strings.HasSuffix(w.metric, u) {
		unit += " " + u
	}
	heads := []string{"side", "limit", ">seeds", ">" + unit, ">± s.e."}
	for _, b := range budgets {
		heads = append(heads, ">"+b.name)
	}
	sides := newTable(heads...)
	for i, x := range w.sides {
		e := f.samples[i].Estimate()
		row := []string{x.name, x.limit(), fmt.Sprint(len(f.samples[i])), formatFinite("%.4g", e.Value),
			formatFinite("%.2g", e.Error)}
		for _, b := range budgets {
			row = append(row, formatFinite("%.4g", w.spent(x, b.name)))
		}
		sides.row(row...)
	}
	fmt.Fprintf(s.out, "\n%s at equal %s\n\n", unit, w.budget)
	sides.write(s.out)
	effect, takes := "d_z", "–"
	if f.Test == presets.Welch {
		effect = "d"
	}
	if f.SeedsNeeded > 0 {
		takes = presets.SeedsText(f.SeedsNeeded)
	}
	out := newTable("difference", ">mean", ">95 % interval", "test", ">t", ">d.f.", ">p", ">"+effect, ">takes",
		"verdict")
	out.row(w.sides[0].name+" − "+w.sides[1].name, formatFinite("%.4g", f.Difference.Value),
		formatFinite("%.4g", f.Low)+" to "+formatFinite("%.4g", f.High), string(f.Test), formatFinite("%.2f", f.T),
		formatFinite("%.1f", f.Difference.Freedom), formatFinite("%.2g", f.P), formatFinite("%.2f", f.Effect), takes,
		f.verdict)
	fmt.Fprintln(s.out)
	out.write(s.out)
	runs := newTable("side", ">seed", ">"+unit, "hash of the parameters", "session")
	for i, x := range w.sides {
		for _, seed := range slices.Sorted(maps.Keys(x.runs)) {
			r := x.runs[seed]
			runs.row(x.name, fmt.Sprint(seed), formatFinite("%.4g", f.samples[i][seed]), r.tally.Sum.ParamsHash, r.dir)
		}
	}
	fmt.Fprintln(s.out)
	runs.write(s.out)
	fmt.Fprintln(s.out)
	for _, note := range f.notes {
		fmt.Fprintln(s.out, note)
	}
	fmt.Fprintln(s.out, "recompute a session and compare its hash: brood verify SESSION")
}

func (w *duel) object(f ruling) map[string]any {
	var sides, sessions []map[string]any
	for i, x := range w.sides {
		e := f.samples[i].Estimate()
		line := map[string]any{"name": x.name, "limit": x.limit(), "seeds": len(f.samples[i]), "mean": finite(e.Value),
			"standard_error": finite(e.Error)}
		for _, b := range budgets {
			line[b.name] = finite(w.spent(x, b.name))
		}
		sides = append(sides, line)
		for _, seed := range slices.Sorted(maps.Keys(x.runs)) {
			r := x.runs[seed]
			line := map[string]any{"side": x.name, "seed": seed, "session": r.dir, "params_hash": r.tally.Sum.ParamsHash}
			if v, ok := f.samples[i][seed]; ok {
				line["value"] = finite(v)
			}
			sessions = append(sessions, line)
		}
	}
	out := map[string]any{"event": "judgement", "metric": w.metric, "budget": w.budget, "budget_ratio": finite(f.ratio),
		"sides": sides, "sessions": sessions, "difference": finite(f.Difference.Value), "low": finite(f.Low),
		"high": finite(f.High), "test": f.Test, "t": finite(f.T), "degrees_of_freedom": finite(f.Difference.Freedom),
		"p": finite(f.P), "effect": finite(f.Effect), "seeds_needed": nil, "verdict": f.verdict,
		"notes": append([]string{}, f.notes...)}
	if f.SeedsNeeded > 0 {
		out["seeds_needed"] = f.SeedsNeeded
	}
	return out
}

// csv returns a row for each run of both sides.
func (w *duel) csv() []byte {
	heads := []string{"side", option.Seed.Name, w.metric}
	for _, b := range budgets {
		heads = append(heads, b.name)
	}
	lines := [][]string{append(heads, "params_hash", "session")}
	number := func(x presets.Sample, seed int) string {
		v, ok := x[seed]
		if !ok {
			return ""
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	for _, x := range w.sides {
		for _, seed := range slices.Sorted(maps.Keys(x.runs)) {
			row := []string{x.name, strconv.Itoa(seed), number(x.sample(w.metric), seed)}
			for _, b := range budgets {
				row = append(row, number(x.sample(b.metric), seed))
			}
			r := x.runs[seed]
			lines = append(lines, append(row, r.tally.Sum.ParamsHash, r.dir))
		}
	}
	var text bytes.Buffer
	_ = csv.NewWriter(&text).WriteAll(lines) // writing to a buffer cannot fail
	return text.Bytes()
}
