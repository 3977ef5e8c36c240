package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"brood/models/data"
	"brood/runtime/evaluate"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/option"
	"brood/runtime/report"
	"brood/tui"
)

func evalCommand(s streams) *cobra.Command {
	var model, set, split, rename, label, form, held, seen, beside string
	var threads int
	var at uint64
	var asJSON bool
	var ascii asciiFlag
	c := &cobra.Command{Use: "eval FILE.safetensors|SESSION", Short: "Score a trained model on the samples of a data set",
		Long: "Score a trained model on the samples of a data set, without dropout: error and loss, precision, recall and F1 of each\n" +
			"class, the confusion of classes and the expected calibration error; for a regression RMSE, MAE and R2. A file of brood\n" +
			"export names its model and its training data; for other files give both. For a session the model is that of the newest\n" +
			"checkpoint, or of the round that --at names.",
		Args: exactly("a FILE or SESSION"),
		RunE: func(c *cobra.Command, args []string) error {
			if !slices.Contains(evaluate.Splits, split) {
				return usage("--split %s: choose one of %s", split, strings.Join(evaluate.Splits, ", "))
			}
			share, ok := option.Held(held)
			switch {
			case held != "" && !ok:
				return usage("--validation %s: give a share below 1, or a whole number of samples", held)
			case held != "" && (split == "test" || split == "all"):
				return usage("--validation %s: it changes nothing of --split %s; leave it out", held, split)
			}
			var views data.Views
			viewing := c.Flags().Changed("views")
			if viewing {
				var err error
				if views, err = data.ParseViews(seen); err != nil {
					return usage("--%v", err)
				}
			}
			if n := strings.Count(beside, ",") + 1; n > 1 && viewing {
				return usage("--views is of one model, and --of %s names %d", beside, n)
			}
			all, err := modelsAsked(c, s, args[0], beside, model, rename, at, threads)
			if err != nil {
				return err
			}
			t := all[0]
			t.Read.Label, t.Read.Undivided = label, split == "all"
			if err := formed(t, form); err != nil {
				return err
			}
			if set == "" {
				set = t.Data
			}
			if set == "" {
				return usage("%s does not say which data it was trained on: name some with --data", args[0])
			}
			samples, err := t.Load(set)
			if err == nil && held != "" {
				samples, err = samples.WithValidation(share)
			}
			if err != nil {
				return err
			}
			if viewing {
				if err := t.Viewable(samples, views); err != nil {
					return fmt.Errorf("--views: %w", err)
				}
			}
			ids := evaluate.SplitOf(samples, split)
			if samples.TestsDrawn() && !t.TrainedOn(set) {
				fmt.Fprintf(s.err, "brood: %s marks no samples for testing, so that %d of %d are its %s samples, as a run would draw them: --split all scores all\n", set, len(ids), samples.Len(), split)
			}
			if len(all) > 1 {
				return sideBySide(c.Context(), s, args[0], all, samples, set, split, threads, asJSON)
			}
			t0 := time.Now()
			sc, err := t.Score(c.Context(), samples, split, threads)
			if err != nil {
				return fmt.Errorf("data %s: %w", set, err)
			}
			if text := passedOver(args[0], t.Spare); text != "" {
				fmt.Fprintln(s.err, "brood: "+text)
			}
			if t.Read.Form == nil {
				fmt.Fprint(s.err, formless(args[0], set))
			} else {
				tellKernels(s, args[0], t, sc.Kernels)
			}
			of, values := t.Scores(samples, ids, sc)
			seconds := time.Since(t0).Seconds()
			var figures *report.Report
			viewed := math.NaN()
			if viewing {
				if figures, viewed, err = t.Viewed(c.Context(), samples, ids, threads, views); err != nil {
					return fmt.Errorf("--views: %w", err)
				}
			} else if figures, err = t.Report(c.Context(), samples, ids, threads); err != nil {
				return fmt.Errorf("data %s: %w", set, err)
			}
			asked := sc.Kernels
			if figures != nil {
				asked = figures.Kernels
			}
			if text := host.Mixed(t.Kernels, asked); text != "" {
				fmt.Fprintf(s.err, "brood: %s was %s\n", args[0], text)
			}
			if asJSON {
				line := evaluated(args[0], t, set, split, sc, of, values, seconds)
				if viewing {
					line["views_error"] = 100 * viewed
				}
				reportInto(line, figures)
				return json.NewEncoder(exact(s.out)).Encode(line)
			}
			fmt.Fprint(s.out, scoredLine(t, set, split, sc.Samples))
			if made := t.Made(); made != "" {
				fmt.Fprintf(s.out, "  %-12s %s\n", t.Of, made)
			}
			for i, x := range of {
				if x.Key != event.KeyTestLoss {
					fmt.Fprintf(s.out, "  %-12s %s\n", strings.TrimPrefix(x.Title, "test "), scoreText(x, values[i]))
				}
			}
			if viewing {
				fmt.Fprintf(s.out, "  views        %s error of the mean over %d views\n", tui.ScoreText(100*viewed, true),
					len(views.List()))
			}
			fmt.Fprintf(s.out, "  loss         %s\n", tui.Number(sc.Mean()))
			if figures != nil && len(figures.Outputs) == 1 {
				fmt.Fprintf(s.out, "  MAE          %s\n", tui.Number(figures.Outputs[0].MAE))
			}
			writeSoup(s.out, t)
			if figures != nil {
				fmt.Fprint(s.out, tui.ReportText(figures, lineWidth(s), ascii.drawn(s)))
			}
			return nil
		}}
	fl := c.Flags()
	fl.StringVar(&model, "model", "", "model by name, or a layer list in a .toml file (default: from the file)")
	fl.StringVar(&set, "data", "", "data set (default: from the file)")
	fl.StringVar(&held, option.Validation.Name, "",
		"training samples that were held out, as given to brood run (default: from the file, else a twelfth)")
	fl.StringVar(&label, option.Label.Name, "", option.Label.DocFor("eval"))
	formFlag(fl, &form)
	fl.StringVar(&rename, option.Rename.Name, "",
		"rename a tensor, or all of a layer, of the file: FROM=TO, several with commas")
	fl.StringVar(&split, "split", "test", "samples to score: "+strings.Join(evaluate.Splits, ", "))
	fl.Uint64Var(&at, "at", 0, "round of a session (default: that of the newest checkpoint)")
	fl.StringVar(&beside, "of", "",
		"model of a session, or several to compare, separated by commas: "+evaluate.OfForms+" (default: centre)")
	threadsFlag(fl, &threads)
	fl.StringVar(&seen, "views", "",
		"also the error of the mean prediction over several views of each image: flip, its mirror image; shift=N, shifted by "+
			"N pixels up and left and down and right, filled with black, or reflect=N, filled with its mirrored border; or "+
			"both, such as flip,shift=1")
	ascii.register(c)
	fl.BoolVar(&asJSON, "json", false, "print the result as JSON")
	return c
}

// formFlag adds the flag --form: the preprocessing of samples for a model file without one.
func formFlag(fl *pflag.FlagSet, form *string) {
	fl.StringVar(form, "form", "",
		"source of the normalisation and the class names if the file has none: a session, a model file, its training data, "+
			"or a .toml file (docs/model-files.md)")
}

// formed applies the preprocessing that --form names to a model.
func formed(t *evaluate.Model, form string) error {
	if form == "" {
		return nil
	}
	known := slices.Contains(data.List(), form)
	switch dir, err := resolve(form); {
	case !known && isSession(form):
		form = dir
	case !known && !data.IsPath(form):
		return fmt.Errorf("--form %s: no data set has this name, and %w", form, err)
	}
	return t.ReadAs(form)
}

// formless returns the note that the preprocessing of the data set is used, since the file has none.
func formless(file, set string) string {
	return fmt.Sprintf("brood: %s does not say how its samples were normalised, nor what its classes are called: those of data %s are used; --form says it\n", oneLine(file), oneLine(set))
}

// opened opens the model of a file or of a session.
func opened(c *cobra.Command, what, model, rename string, at uint64, threads int) (*evaluate.Model, error) {
	dir, at, err := ofSession(c, what, at)
	if err != nil {
		return nil, err
	}
	if dir == "" {
		return evaluate.Open(what, model, rename)
	}
	return evaluate.Export(c.Context(), nil, dir, at, threads, nil)
}

// ofSession returns the directory and the round of a session; "" for a model file. It fails if what is neither.
func ofSession(c *cobra.Command, what string, at uint64) (dir string, round uint64, err error) {
	if strings.HasSuffix(what, ".safetensors") || !isSession(what) {
		if info, err := os.Stat(what); errors.Is(err, fs.ErrNotExist) && !strings.HasSuffix(what, ".safetensors") ||
			err == nil && info.IsDir() {
			return "", 0, fmt.Errorf("%s is neither a file nor a session: `brood sessions` lists those that there are", what)
		}
		if c.Flags().Changed("at") {
			return "", 0, usage("--at needs a session, and %s is a file", what)
		}
		return "", 0, nil
	}
	for _, name := range []string{"model", option.Rename.Name} {
		if c.Flags().Changed(name) {
			return "", 0, usage("--%s needs a file: a session knows its model", name)
		}
	}
	if dir, err = resolve(what); err != nil {
		return "", 0, err
	}
	if c.Flags().Changed("at") && at == 0 {
		return "", 0, usage("--at 0: give a round of 1 or more")
	}
	if err := evaluate.Askable(dir); err != nil {
		return "", 0, err
	}
	round, err = host.Checkpointed(dir, at)
	return dir, round, err
}

// isSession reports whether what is the name of a session and not of a file.
func isSession(what string) bool {
	if info, err := os.Stat(what); err == nil && !info.IsDir() {
		return false
	}
	_, err := resolve(what)
	return err == nil
}
