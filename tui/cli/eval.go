package cli

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"brood/models/data"
	"brood/runtime/evaluate"
	"brood/runtime/event"
	"brood/runtime/option"
	"brood/runtime/report"
	"brood/tui/panel/trained"
	"brood/tui/textfmt"
)

// evalFlags holds the argument and the flags of `brood eval`.
type evalFlags struct {
	modelFlags
	set, split string
	validation string // --validation; "" for the split of the file
	viewsText  string
	ascii      asciiFlag
	asJSON     bool

	views   data.Views // parsed from viewsText
	viewing bool       // --views is given
	share   float64    // parsed from validation
}

func evalCommand(s streams) *cobra.Command {
	f := &evalFlags{}
	c := &cobra.Command{Use: "eval FILE.safetensors|SESSION", Short: "Score a trained model on the samples of a data set",
		Long: "Score a trained model on the samples of a data set, without dropout: error and loss, precision,\n" +
			"recall and F1 of each class, the confusion of classes and the expected calibration error; for a regression\n" +
			"RMSE, MAE and R2. A file of brood export names its model and its training data; for other files give both.\n" +
			"For a session the model is taken from the newest checkpoint, or from the round --at.",
		Args: exactly("a FILE or SESSION"),
		RunE: func(c *cobra.Command, args []string) error {
			f.what = args[0]
			return f.execute(c, s)
		}}
	fl := c.Flags()
	f.register(c, "model of a session, or several to compare, separated by commas: "+evaluate.OfForms+" (default: "+
		"centre)")
	fl.StringVar(&f.set, "data", "", "data set (default: from the file)")
	fl.StringVar(&f.validation, option.Validation.Name, "",
		"training samples that were held out, as given to brood run (default: from the file, else a twelfth)")
	fl.StringVar(&f.split, "split", "test", "samples to score: "+strings.Join(evaluate.Splits, ", "))
	fl.StringVar(&f.viewsText, "views", "",
		"also the error of the mean prediction over several views of each image: flip, its mirror image; shift=N, "+
			"shifted by N pixels up and left and down and right, filled with black, or reflect=N, filled with its mirrored "+
			"border; or both, such as flip,shift=1")
	f.ascii.register(c)
	fl.BoolVar(&f.asJSON, "json", false, "print the result as JSON")
	return c
}

func (f *evalFlags) check(c *cobra.Command) (err error) {
	if !slices.Contains(evaluate.Splits, f.split) {
		return usage("--split %s: choose one of %s", f.split, strings.Join(evaluate.Splits, ", "))
	}
	ok := true
	f.share, ok = option.ParseValidation(f.validation)
	switch {
	case f.validation != "" && !ok:
		return usage("--validation %s: give a share below 1, or a whole number of samples", f.validation)
	case f.validation != "" && (f.split == "test" || f.split == "all"):
		return usage("--validation %s has no effect on --split %s: leave it out", f.validation, f.split)
	}
	if f.set != "" {
		if err := data.Find(f.set); err != nil {
			return err
		}
	}
	if f.viewing = c.Flags().Changed("views"); !f.viewing {
		return nil
	}
	if f.views, err = data.ParseViews(f.viewsText); err != nil {
		return usage("--%v", err)
	}
	if n := strings.Count(f.of, ",") + 1; n > 1 {
		return usage("--views needs one model, and --of %s names %d", f.of, n)
	}
	return nil
}

// load reads the samples with the preprocessing of the model. Without --data it sets f.set to the training data.
func (f *evalFlags) load(t *evaluate.Model) (*data.Set, error) {
	t.Read.Label, t.Read.Undivided = f.label, f.split == "all"
	if err := applyForm(t, f.form); err != nil {
		return nil, err
	}
	if f.set == "" {
		f.set = t.Data
	}
	if f.set == "" {
		return nil, usage("%s does not record its training data: give a data set with --data", f.what)
	}
	samples, err := t.Load(f.set)
	if err == nil && f.validation != "" {
		samples, err = samples.WithValidation(f.share)
	}
	if err != nil || !f.viewing {
		return samples, err
	}
	if err := t.Viewable(samples, f.views); err != nil {
		return nil, fmt.Errorf("--views: %w", err)
	}
	return samples, nil
}

func (f *evalFlags) execute(c *cobra.Command, s streams) error {
	if err := f.check(c); err != nil {
		return err
	}
	all, err := f.open(c, s)
	if err != nil {
		return err
	}
	samples, err := f.load(all[0])
	if err != nil {
		return err
	}
	ids := evaluate.SplitOf(samples, f.split)
	if samples.TestsDrawn() && !all[0].TrainedOn(f.set) {
		fmt.Fprintf(s.err, "brood: %s has no test split: scoring the %d of %d samples that a run would draw as its %s "+
			"split; --split all scores all samples\n", f.set, len(ids), samples.Len(), f.split)
	}
	if len(all) > 1 {
		return f.scoreSeveral(c.Context(), s, all, samples, ids)
	}
	r, err := f.score(c.Context(), s, all[0], samples, ids)
	if err != nil {
		return err
	}
	if f.asJSON {
		return objects(s.out, f.object(all[0], r))
	}
	f.print(s, all[0], r)
	return nil
}

// evalResult is the evaluation of one model.
type evalResult struct {
	evaluate.Scored
	scores  []event.Score
	values  []float64 // of scores
	seconds float64   // time of the scores
	figures *report.Report
	viewed  float64 // error of the mean over the views, as a share; NaN without --views
	// of the first score on the validation samples, with --split test of the training data; NaN otherwise
	validation float64
}

// score evaluates a model on the samples ids of a set. It prints notes on the file and the kernels.
func (f *evalFlags) score(ctx context.Context, s streams, t *evaluate.Model, samples *data.Set, ids []int32) (
	r evalResult, err error) {
	from := time.Now()
	if r.Scored, err = t.Score(ctx, samples, f.split, f.threads); err != nil {
		return r, fmt.Errorf("data %s: %w", f.set, err)
	}
	if text := unusedTensors(f.what, t.Spare); text != "" {
		fmt.Fprintln(s.err, "brood: "+text)
	}
	if t.Read.Form == nil {
		fmt.Fprint(s.err, missingForm(f.what, f.set))
	}
	r.scores, r.values = t.Scores(samples, ids, r.Scored)
	r.seconds = time.Since(from).Seconds()
	r.viewed, r.validation = math.NaN(), math.NaN()
	if ids := evaluate.SplitOf(samples, "validation"); f.split == "test" && len(ids) > 0 && t.TrainedOn(f.set) {
		scored, err := t.Score(ctx, samples, "validation", f.threads)
		if err != nil {
			return r, fmt.Errorf("data %s: %w", f.set, err)
		}
		_, values := t.Scores(samples, ids, scored)
		r.validation = values[0]
	}
	if f.viewing {
		if r.figures, r.viewed, err = t.Viewed(ctx, samples, ids, f.threads, f.views); err != nil {
			return r, fmt.Errorf("--views: %w", err)
		}
	} else if r.figures, err = t.Report(ctx, samples, ids, f.threads); err != nil {
		return r, fmt.Errorf("data %s: %w", f.set, err)
	}
	kernels := []string{r.Kernels}
	if r.figures != nil {
		kernels = append(kernels, r.figures.Kernels)
	}
	noteKernels(s, f.what, t, kernels...)
	return r, nil
}

func (f *evalFlags) object(t *evaluate.Model, r evalResult) map[string]any {
	line := map[string]any{"event": "evaluated", "file": f.what, "model": t.Net.Name, "data": f.set, "split": f.split,
		"samples": r.Samples, "kernels": r.Kernels, "loss": finite(r.Mean()), "seconds": r.seconds}
	for i, x := range r.scores {
		line[strings.TrimPrefix(x.Key, "test_")] = finite(r.values[i])
	}
	if r.validation == r.validation {
		line["validation"+strings.TrimPrefix(r.scores[0].Key, "test")] = finite(r.validation)
	}
	madeInto(line, t)
	if f.viewing {
		line["views_error"] = 100 * r.viewed
	}
	reportInto(line, r.figures)
	return line
}

func (f *evalFlags) print(s streams, t *evaluate.Model, r evalResult) {
	fmt.Fprint(s.out, scoredLine(t, f.set, f.split, r.Samples))
	if made := t.Made(); made != "" {
		fmt.Fprintf(s.out, "  %-12s %s\n", t.Of, made)
	}
	for _, i := range shown(r.scores) {
		x := r.scores[i]
		fmt.Fprintf(s.out, "  %-12s %s\n", strings.TrimPrefix(x.Title, "test "), scoreText(x, r.values[i]))
	}
	if r.validation == r.validation {
		fmt.Fprintf(s.out, "  validation   %s %s\n", strings.TrimPrefix(r.scores[0].Title, "test "),
			scoreText(r.scores[0], r.validation))
	}
	if f.viewing {
		fmt.Fprintf(s.out, "  views        %s error of the mean over %d views\n", textfmt.ScoreText(100*r.viewed, true),
			len(f.views.List()))
	}
	fmt.Fprintf(s.out, "  loss         %s\n", textfmt.Number(r.Mean()))
	if r.figures != nil && len(r.figures.Outputs) == 1 {
		fmt.Fprintf(s.out, "  MAE          %s\n", textfmt.Number(r.figures.Outputs[0].MAE))
	}
	writeSoup(s.out, t)
	if r.figures != nil {
		fmt.Fprint(s.out, trained.ReportText(r.figures, lineWidth(s), f.ascii.only(s)))
	}
}
