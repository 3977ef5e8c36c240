package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"brood/models/data"
	"brood/models/engine"
	"brood/runtime/evaluate"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/worker"
	"brood/tui/textfmt"
)

// noteKernels prints a note if one of these kernels, which evaluated a model, is not that which trained it.
func noteKernels(s streams, what string, t *evaluate.Model, kernels ...string) {
	for _, k := range kernels {
		if text := host.MixedKernels(t.Kernels, k); text != "" {
			fmt.Fprintf(s.err, "brood: %s was %s\n", what, text)
			return
		}
	}
}

func scoredLine(t *evaluate.Model, set, split string, samples int64) string {
	scored := textfmt.Grouped(samples) + " " + split
	if split == "all" {
		scored = "all " + textfmt.Grouped(samples)
	}
	return fmt.Sprintf("%s on %s, %s samples\n", oneLine(t.Net.Name), oneLine(set), scored)
}

// scoreSeveral prints the scores of several models of a session on the same samples, one line each.
func (f *evalFlags) scoreSeveral(ctx context.Context, s streams, all []*evaluate.Model, samples *data.Set,
	ids []int32) error {
	var lines *table
	for i, t := range all {
		from := time.Now()
		sc, err := t.Score(ctx, samples, f.split, f.threads)
		if err != nil {
			return fmt.Errorf("data %s: %w", f.set, err)
		}
		if i == 0 {
			noteKernels(s, f.what, t, sc.Kernels)
		}
		scores, values := t.Scores(samples, ids, sc)
		if f.asJSON {
			r := evalResult{Scored: sc, scores: scores, values: values, seconds: time.Since(from).Seconds()}
			if err := objects(s.out, f.object(t, r)); err != nil {
				return err
			}
			continue
		}
		if lines == nil {
			fmt.Fprint(s.out, scoredLine(t, f.set, f.split, sc.Samples))
			lines = newTable("of")
			for _, x := range shown(scores) {
				lines.column(">" + strings.TrimPrefix(scores[x].Title, "test "))
			}
			lines.column(">loss")
			lines.column("made of")
		}
		row := []string{t.Of.String()}
		for _, x := range shown(scores) {
			row = append(row, scoreText(scores[x], values[x]))
		}
		lines.row(append(row, textfmt.Number(sc.Mean()), t.Made())...)
	}
	if lines != nil {
		lines.write(s.out)
		for _, t := range all {
			writeSoup(s.out, t)
		}
	}
	return nil
}

// shown returns the indices of the scores other than the test loss, which always has a column or line.
func shown(of []event.Score) (out []int) {
	for i, x := range of {
		if x.Key != event.KeyTestLoss {
			out = append(out, i)
		}
	}
	return out
}

// writeSoup prints the ingredients of a soup in the order in which they were tried; nothing for another model.
func writeSoup(w io.Writer, t *evaluate.Model) {
	if t.Soup == nil {
		return
	}
	word, text := "loss", textfmt.Number
	if t.Graded {
		word, text = "error", func(x float64) string { return textfmt.ScoreText(x, true) }
	}
	lines := newTable(">member", ">validation "+word, ">with it", "")
	for _, x := range t.Soup {
		in := "left out"
		if x.In {
			in = "in"
		}
		lines.row(fmt.Sprint(x.Member), text(x.Alone), text(x.With), in)
	}
	fmt.Fprintf(w, "soup: best member on the validation samples first; members that would raise the %s of the mean "+
		"are left out\n",
		word)
	lines.write(w)
}

// madeInto adds to a JSON object which model of a session was evaluated.
func madeInto(line map[string]any, t *evaluate.Model) {
	if t.Of == (evaluate.Of{}) {
		return
	}
	line["of"] = t.Of.String()
	if t.Members != nil {
		line["members"] = t.Members
	}
	if t.Rounds > 0 {
		line["averaged_rounds"] = t.Rounds
	}
	if t.Soup != nil {
		line["soup"] = ingredients(t.Soup)
	}
}

// ingredients returns the ingredients of a soup as JSON objects, in the order in which they were tried.
func ingredients(soup []worker.Ingredient) (out []any) {
	type ingredient struct {
		Member engine.Member `json:"member"`
		Alone  any           `json:"alone"`
		With   any           `json:"with"`
		In     bool          `json:"in"`
	}
	for _, x := range soup {
		out = append(out, ingredient{x.Member, finite(x.Alone), finite(x.With), x.In})
	}
	return out
}
