package cli

import (
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"brood/models"
	"brood/models/data"
	"brood/runtime/host"
	"brood/runtime/option"
	"brood/runtime/report"
)

// Columns of a table of predictions; the class NAME has the column p_NAME besides.
const (
	columnSample, columnPrediction, columnLabel = "sample", "prediction", "label"
	columnProbability                           = "p_"
)

// Columns of the likeliest classes, counted from 1: class_1, probability_1.
const (
	columnClass, columnOf = "class_", "probability_"
	topClasses            = 5
)

// predicting is what `brood predict` was asked for.
type predicting struct {
	file, set           string
	model, rename, into string
	ofFlag              string
	label, form         string
	at                  uint64
	threads, top        int
	force               bool
}

func predictCommand(s streams) *cobra.Command {
	var x predicting
	c := &cobra.Command{
		Use:   "predict FILE.safetensors|SESSION DATA",
		Short: "Write what a trained model predicts for each sample: the class, with the probability of each, or a number",
		Long:  "Write what a trained model predicts for each sample, as CSV: the class, with the probability of each class, or of a regression the number,\nin the unit of its label. DATA is a data set, of which the test\nsamples are taken, or a path to samples of your own, which need no labels; they are read as the model's own were. Of a session it is the model of its\nnewest checkpoint, or of the round that --at names. docs/model-files.md tells the columns.",
		Args:  exactly("a FILE or SESSION", "DATA, the samples to predict"),
		RunE: func(c *cobra.Command, args []string) error {
			x.file, x.set = args[0], args[1]
			if strings.Contains(x.ofFlag, ",") {
				return usage("--of %s: a table holds what one model predicts; ask them one by one, with -o", x.ofFlag)
			}
			all, err := modelsAsked(c, s, x.file, x.ofFlag, x.model, x.rename, x.at, x.threads)
			if err != nil {
				return err
			}
			return x.execute(c.Context(), s, all[0])
		},
	}
	fl := c.Flags()
	fl.StringVarP(&x.into, "output", "o", "-", "CSV file to write, - for standard output")
	fl.StringVar(&x.model, "model", "", "model by name, or a layer list in a .toml file (default: as the file says)")
	fl.StringVar(&x.label, option.Label.Name, "", option.Label.DocFor("predict"))
	formFlag(fl, &x.form)
	fl.Uint64Var(&x.at, "at", 0, "the round of a session (default: that of the newest checkpoint)")
	fl.StringVar(&x.ofFlag, "of", "", "of a session: which model: "+host.OfForms+" (default: centre)")
	fl.StringVar(&x.rename, option.Rename.Name, "",
		"names in the file and ours, as FROM=TO, several with commas: a tensor, or all of a layer")
	fl.IntVar(&x.top, "top", 0, "classes to write of each sample, the likeliest first, in place of a column for each (default: all, of more than 256 classes 5)")
	threadsFlag(fl, &x.threads)
	fl.BoolVar(&x.force, "force", false, "replace the file if there is one")
	return c
}

func (x *predicting) execute(ctx context.Context, s streams, t *host.Trained) error {
	t.Read.Label = x.label
	if err := formed(t, x.form); err != nil {
		return err
	}
	asked, err := t.Read.Ask(x.set)
	if err != nil {
		return err
	}
	if text := passedOver(x.file, t.Spare); text != "" {
		fmt.Fprintln(s.err, "brood: "+text)
	}
	if t.Read.Form == nil {
		fmt.Fprint(s.err, formless(x.file, x.set))
	}
	if x.top, err = listed(x.top, t.Net); err != nil {
		return err
	}
	kernels := ""
	write := func(w io.Writer) (err error) {
		kernels, err = predictions(ctx, w, t, asked, x.top, x.threads)
		return err
	}
	if x.into == "-" {
		err = write(exact(s.out))
	} else {
		err = writeFile(x.into, x.force, write)
	}
	if err != nil {
		return err
	}
	if t.Kernels != "" && t.Kernels != kernels {
		fmt.Fprintf(s.err, "brood: %s was computed by %s, and is asked by %s: last digits may differ\n", x.file, t.Kernels,
			kernels)
	}
	if x.into == "-" {
		return nil
	}
	fmt.Fprintf(s.out, "%s: %s of %s, predicted by %s\n", x.into, plural(len(asked.IDs), "sample"), x.set, t.Net.Name)
	return nil
}

// listed is how many classes are written of each sample, 0 for a column for each.
func listed(top int, m *models.Model) (int, error) {
	switch {
	case top == 0 && m.Classes > tableClasses:
		return topClasses, nil
	case top == 0:
		return 0, nil
	case m.Classes == 0:
		return 0, usage("--top %d: model %s predicts no classes; leave it out", top, m.Name)
	case top < 0 || top > m.Classes:
		return 0, usage("--top %d: model %s has %d classes; give 1 to %d", top, m.Name, m.Classes, m.Classes)
	}
	return top, nil
}

// likeliest are the n classes of the largest probabilities, of equal ones the first first.
func likeliest(p []float64, n int) []int {
	order := make([]int, len(p))
	for c := range order {
		order[c] = c
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[b], p[a]) })
	return order[:n]
}

// predictions writes a line for each sample, and says what computed them: of all classes, or of the top likeliest.
// Probabilities have the nine digits that results in float32 can tell.
func predictions(ctx context.Context, w io.Writer, t *host.Trained, asked *data.Asked, top,
	threads int) (kernels string, err error) {
	out := csv.NewWriter(w)
	head := []string{columnSample, columnPrediction}
	if asked.Answers != nil {
		head = append(head, columnLabel)
	}
	for c := range t.Net.Classes {
		if top == 0 {
			head = append(head, columnProbability+asked.ClassName(c))
		}
	}
	for c := range top {
		head = append(head, columnClass+strconv.Itoa(c+1), columnOf+strconv.Itoa(c+1))
	}
	if t.Net.Regression() {
		head = predictedColumns(t.Net.Outputs, t.OutputNames(asked.Set), asked.Answers != nil)
	}
	headed := false
	kernels, err = t.Predict(ctx, asked.Set, asked.IDs, threads, func(at int, p [][]float64) error {
		if !headed { // nothing is written where the model refuses the data
			headed = true
			if err := out.Write(head); err != nil {
				return err
			}
		}
		for i, of := range p {
			row, answered := []string{asked.Names[at+i]}, []string(nil)
			if asked.Answers != nil {
				answered = asked.Answers[at+i : at+i+1]
			}
			switch {
			case t.Net.MultiLabel():
				row = append(append(row, tags(of)), answered...)
			case !t.Net.Regression():
				row = append(append(row, asked.ClassName(report.Likeliest(of))), answered...)
			}
			if top > 0 {
				for _, c := range likeliest(of, top) {
					row = append(row, asked.ClassName(c), strconv.FormatFloat(of[c], 'g', 9, 64))
				}
				of = nil
			}
			for _, v := range of {
				digits := 9
				if t.Net.Regression() {
					digits = 14 // far from zero nine tell neighbours from each other no more
				}
				row = append(row, strconv.FormatFloat(v, 'g', digits, 64))
			}
			if t.Net.Regression() {
				row = append(row, answered...)
			}
			if err := out.Write(row); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	out.Flush()
	return kernels, out.Error()
}

// tags is 1 for each class that is predicted of a sample which may be in several, and else 0, in the form of labels in
// several columns.
func tags(p []float64) string {
	out := make([]string, len(p))
	for c, v := range p {
		if out[c] = "0"; v > 0.5 {
			out[c] = "1"
		}
	}
	return strings.Join(out, ",")
}

// predictedColumns are those of a regression: the sample, the number that is predicted, or one for each output, by its
// name where it has one, and the label.
func predictedColumns(outputs int, names []string, answered bool) []string {
	head := []string{columnSample, columnPrediction}
	for k := 2; k <= outputs; k++ {
		head = append(head, fmt.Sprintf("%s_%d", columnPrediction, k))
	}
	if outputs > 1 {
		for k, name := range names {
			head[1+k] = columnPrediction + "_" + name
		}
	}
	if answered {
		head = append(head, columnLabel)
	}
	return head
}
