package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"brood/models/data"
	"brood/models/engine"
	"brood/runtime/evaluate"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/worker"
	"brood/tui"
)

// modelsAsked returns the models to evaluate: that of a file, or those of a session that --of names.
func modelsAsked(c *cobra.Command, s streams, what, beside, model, rename string, at uint64,
	threads int) ([]*evaluate.Model, error) {
	if !c.Flags().Changed("of") {
		t, err := opened(c, what, model, rename, at, threads)
		return []*evaluate.Model{t}, err
	}
	of, err := evaluate.ParseOf(beside)
	if err != nil {
		return nil, usage("--of: %v", err)
	}
	dir, at, err := ofSession(c, what, at)
	if err != nil {
		return nil, err
	}
	if dir == "" {
		return nil, usage("--of needs a session, and %s is a file", what)
	}
	last := time.Now()
	return evaluate.Take(c.Context(), nil, dir, at, of, threads, func(k event.Commit) {
		if time.Since(last) > time.Second {
			last = time.Now()
			fmt.Fprintf(s.err, "brood: recomputed round %d\n", k.To)
		}
	})
}

// tellKernels prints a note if kernels other than those that trained a model, but of the same arithmetic, evaluate
// it: the last digits may differ.
func tellKernels(s streams, what string, t *evaluate.Model, kernels string) {
	if t.Kernels != "" && t.Kernels != kernels && host.Mixed(t.Kernels, kernels) == "" {
		fmt.Fprintf(s.err, "brood: %s was computed by %s, and is scored by %s: last digits may differ\n", what, t.Kernels,
			kernels)
	}
}

// scoredLine describes the model and the samples.
func scoredLine(t *evaluate.Model, set, split string, samples int64) string {
	scored := grouped(samples) + " " + split
	if split == "all" {
		scored = "all " + grouped(samples)
	}
	return fmt.Sprintf("%s on %s, %s samples\n", oneLine(t.Net.Name), oneLine(set), scored)
}

// evaluated returns the result of a model as a JSON object.
func evaluated(what string, t *evaluate.Model, set, split string, sc evaluate.Scored, of []event.Score,
	values []float64, seconds float64) map[string]any {
	line := map[string]any{"event": "evaluated", "file": what, "model": t.Net.Name, "data": set, "split": split,
		"samples": sc.Samples,
		"kernels": sc.Kernels, "loss": finite(sc.Mean()), "seconds": seconds}
	for i, x := range of {
		line[strings.TrimPrefix(x.Key, "test_")] = finite(values[i])
	}
	madeInto(line, t)
	return line
}

// sideBySide prints the scores of several models of a session on the same samples, one line each.
func sideBySide(ctx context.Context, s streams, what string, all []*evaluate.Model, samples *data.Set,
	set, split string, threads int, asJSON bool) error {
	ids := evaluate.SplitOf(samples, split)
	var lines *table
	for i, t := range all {
		t0 := time.Now()
		sc, err := t.Score(ctx, samples, split, threads)
		if err != nil {
			return fmt.Errorf("data %s: %w", set, err)
		}
		if i == 0 {
			tellKernels(s, what, t, sc.Kernels)
			if text := host.Mixed(t.Kernels, sc.Kernels); text != "" {
				fmt.Fprintf(s.err, "brood: %s was %s\n", what, text)
			}
		}
		of, values := t.Scores(samples, ids, sc)
		if asJSON {
			if err := json.NewEncoder(exact(s.out)).Encode(evaluated(what, t, set, split, sc, of, values,
				time.Since(t0).Seconds())); err != nil {
				return err
			}
			continue
		}
		if lines == nil {
			fmt.Fprint(s.out, scoredLine(t, set, split, sc.Samples))
			lines = newTable("of")
			for _, x := range shown(of) {
				lines.column(">" + strings.TrimPrefix(of[x].Title, "test "))
			}
			lines.column(">loss")
			lines.column("made of")
		}
		row := []string{t.Of.String()}
		for _, x := range shown(of) {
			row = append(row, scoreText(of[x], values[x]))
		}
		lines.row(append(row, tui.Number(sc.Mean()), t.Made())...)
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
	word, text := "loss", tui.Number
	if t.Graded {
		word, text = "error", func(x float64) string { return tui.ScoreText(x, true) }
	}
	lines := newTable(">member", ">validation "+word, ">with it", "")
	for _, x := range t.Soup {
		in := "left out"
		if x.In {
			in = "in"
		}
		lines.row(fmt.Sprint(x.Member), text(x.Alone), text(x.With), in)
	}
	fmt.Fprintf(w, "soup: the best on validation samples first; left out is with whom the %s of the mean would rise\n",
		word)
	lines.write(w)
}

// madeInto adds to an object which model of a session was evaluated.
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
