package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"brood/presets"
)

// metric is what a run measured, once it is finished; ok is false where it did not.
func (t *tally) metric(name string) (x float64, ok bool) {
	sent := 0.0
	for _, n := range t.sum.BytesSent {
		sent += float64(n)
	}
	switch {
	case name == "test_error" && t.tested() != nil:
		return t.tested().TestError, true
	case name == "test_loss" && t.tested() != nil:
		return t.tested().TestLoss, true
	case (name == "memory" || name == "diversity") && t.means[name] != nil:
		return t.means[name].sum / t.means[name].count, true
	case name == "seconds" && t.sum.Seconds > 0:
		return t.sum.Seconds, true
	case name == "train_loss" && t.sum.TrainLoss != nil:
		return *t.sum.TrainLoss, true
	case name == "bytes" && t.sum.Rounds > 0:
		return sent, true
	case name == "bytes_per_sample" && t.sum.Samples > 0:
		return sent / float64(t.sum.Samples), true
	case name == "bytes_per_eval" && t.sum.Evaluations > 0:
		return sent / float64(t.sum.Evaluations), true
	case name == "samples_per_s":
		return t.sum.SamplesPerSecond, true
	case name == "epochs" && t.sum.Epochs > 0:
		return t.sum.Epochs, true
	case name == "centre_loss" && t.centre != nil:
		return *t.centre, true
	case name == "centre_advance" && t.centre != nil && len(t.fitness) > 0:
		mean := 0.0
		for _, f := range t.fitness {
			mean -= f / float64(len(t.fitness))
		}
		return mean - *t.centre, true
	}
	return 0, false
}

// judgement is a claim beside what was measured.
type judgement struct {
	preset, metric, published, value, se, verdict string
	claim                                         presets.Claim
	known                                         bool
	x, e                                          float64 // where it is known: the value, and its standard error
	seeds                                         int
	seconds                                       float64
}

func (w *study) judgements(all map[string]*outcome) (out []judgement) {
	for _, p := range w.presets {
		for _, c := range p.Claims {
			x, others, lacks := all[p.Name].metrics[c.Metric], map[string]presets.Sample{}, []string(nil)
			for _, other := range c.Others() {
				if m := all[other]; m != nil {
					others[other] = m.metrics[c.Metric]
				}
				if len(others[other]) == 0 {
					lacks = append(lacks, other)
				}
			}
			j := judgement{preset: p.Name, published: "–", value: "–", se: "–", claim: c, seeds: len(x), seconds: all[p.Name].seconds}
			if c.Published != nil {
				j.published = fmt.Sprintf("%g", *c.Published)
			}
			if len(x) > 0 && (len(lacks) == 0 || c.Ratio == nil && c.Slope == nil) {
				v, e := c.Measured(x, others)
				j.value, j.known, j.x, j.e = fmt.Sprintf("%.4g", v), true, v, e
				if e == e {
					j.se = fmt.Sprintf("%.2g", e)
				}
			}
			switch {
			case len(x) == 0:
				j.verdict = unmeasured
			case len(lacks) > 0:
				j.verdict = fmt.Sprintf("%s: %s", unmeasured, strings.Join(lacks, ", "))
			default:
				j.verdict = string(c.Judge(x, others))
			}
			j.metric = c.Metric + " " + presets.Metrics[c.Metric]
			switch {
			case c.Slope != nil:
				j.metric = "slope of " + c.Metric
			case c.Ratio != nil:
				j.metric = "ratio of " + c.Metric
			}
			out = append(out, j)
		}
	}
	return out
}

const unmeasured = "not measured"

// judged is the table of all claims. What a claim states is of the short form: full ones stand beside what was published, and are not judged.
func (w *study) judged(all map[string]*outcome) *table {
	heads := []string{"preset", "source", "metric", ">published", ">measured", ">± s.e.", ">seeds", ">time"}
	if !w.full {
		heads = append(heads, "stated beforehand", "verdict")
	}
	out := newTable(heads...)
	for _, j := range w.judgements(all) {
		row := []string{j.preset, j.claim.Source, j.metric, j.published, j.value, j.se, fmt.Sprint(j.seeds), fmt.Sprintf("%.0f s", j.seconds)}
		if !w.full {
			row = append(row, j.claim.States(), j.verdict)
		}
		out.row(row...)
	}
	return out
}

// tell writes the claims as objects, one a line.
func (w *study) tell(to io.Writer) {
	enc := json.NewEncoder(to)
	for _, j := range w.judgements(w.measured()) {
		line := map[string]any{"event": "claim", "study": w.name, "preset": j.preset, "source": j.claim.Source, "metric": j.metric, "published": j.claim.Published, "measured": nil, "standard_error": nil, "seeds": j.seeds, "seconds": j.seconds}
		if j.known {
			line["measured"], line["standard_error"] = finite(j.x), finite(j.e)
		}
		if !w.full {
			line["stated"], line["verdict"] = j.claim.States(), j.verdict
		}
		_ = enc.Encode(line)
	}
}

// soFar is the table of the claims that something is known of.
func (w *study) soFar(rows int) *table {
	out := newTable("preset", "metric", ">published", ">measured", ">± s.e.", "")
	for _, j := range w.judgements(w.measured()) {
		if j.value == "–" || len(out.rows) > rows {
			continue
		}
		if w.full || strings.HasPrefix(j.verdict, unmeasured) {
			j.verdict = ""
		}
		out.row(j.preset, j.metric, j.published, j.value, j.se, j.verdict)
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

// claimed prints a preset's claims beside what its run measured. What a claim states is of the short form; the published
// number is of the full one.
func claimed(w io.Writer, preset string, metric func(string) (float64, bool)) {
	p, full, err := presets.Recorded(preset)
	if err != nil {
		if strings.HasSuffix(preset, ".toml") {
			fmt.Fprintf(w, "  claims       not judged: %v\n", err)
		}
		return // of none, or of another version
	}
	for _, c := range p.Claims {
		x, ok := metric(c.Metric)
		if !ok || c.Slope != nil {
			continue
		}
		text := fmt.Sprintf("measured %.4g %s", x, presets.Metrics[c.Metric])
		if c.Published != nil && c.Ratio == nil {
			text += fmt.Sprintf(", published %g, difference %+.3g", *c.Published, x-*c.Published)
		}
		if !full {
			text += "; stated " + c.States()
		}
		fmt.Fprintf(w, "  claim        %s: %s (%s)\n", c.Metric, text, c.Source)
	}
	if len(p.Claims) > 0 {
		fmt.Fprintf(w, "               several seeds judge it: brood reproduce %s\n", cmp.Or(p.Study, p.Name))
	}
}
