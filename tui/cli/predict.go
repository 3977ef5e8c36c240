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
	"brood/runtime/evaluate"
	"brood/runtime/report"
	"brood/tui/textfmt"
)

// Columns of a table of predictions. Column p_NAME is the probability of class NAME.
const (
	columnSample, columnPrediction, columnLabel = "sample", "prediction", "label"
	columnProbability                           = "p_"
)

// Columns of the likeliest classes, counted from 1: class_1, probability_1.
const (
	columnClass, columnOf = "class_", "probability_"
	topClasses            = 5 // default number of classes for models with more than tableClasses
)

// predictFlags holds the arguments and flags of `brood predict`.
type predictFlags struct {
	modelFlags
	set    string // argument
	output string
	top    int
	id     string
	force  bool
}

func predictCommand(s streams) *cobra.Command {
	var x predictFlags
	c := &cobra.Command{
		Use:   "predict FILE.safetensors|SESSION DATA",
		Short: "Write what a trained model predicts for each sample: the class, with the probability of each, or a number",
		Long: "Write what a trained model predicts for each sample, as CSV: the class with the probability of each\n" +
			"class, or the number of a regression in the unit of its label. DATA is a data set, of which the test samples\n" +
			"are used, or a path to your own samples, which need no labels, or - for a table on standard input; they are\n" +
			"preprocessed as the training data was. For a session the model is taken from the newest checkpoint, or from\n" +
			"the round --at. docs/model-files.md describes the columns.",
		Args: exactly("a FILE or SESSION", "DATA, the samples to predict"),
		RunE: func(c *cobra.Command, args []string) error {
			x.what, x.set = args[0], args[1]
			if strings.Contains(x.of, ",") {
				return usage("--of %s: a table has the predictions of one model; run predict once for each, with -o", x.of)
			}
			if err := x.check(); err != nil {
				return err
			}
			all, err := x.open(c, s)
			if err != nil {
				return err
			}
			return x.execute(c.Context(), s, all[0])
		},
	}
	x.register(c, "model of a session: "+evaluate.OfForms+" (default: centre)")
	fl := c.Flags()
	fl.StringVarP(&x.output, "output", "o", "-", "CSV file to write, - for standard output")
	fl.IntVar(&x.top, "top", 0, "likeliest classes to write for each sample instead of a column for each class "+
		"(default: a column for each, or 5 if there are more than 256)")
	fl.StringVar(&x.id, "id", "", "columns of the samples to write before the prediction, by name with commas")
	fl.BoolVar(&x.force, "force", false, "replace an existing file")
	return c
}

// check fails if the samples do not exist or the output cannot be written.
func (x *predictFlags) check() error {
	if x.set != "-" {
		if err := data.Find(x.set); err != nil {
			return err
		}
	}
	if x.output == "-" {
		return nil
	}
	return writable(x.output, x.force)
}

func (x *predictFlags) execute(ctx context.Context, s streams, t *evaluate.Model) error {
	t.Read.Label = x.label
	if err := applyForm(t, x.form); err != nil {
		return err
	}
	t.Read.Carry = x.id
	var asked *data.Asked
	var err error
	if x.set == "-" {
		asked, err = t.Read.AskTable(s.in, "standard input")
	} else {
		asked, err = t.Read.Ask(x.set)
	}
	if err != nil {
		return err
	}
	if text := unusedTensors(x.what, t.Spare); text != "" {
		fmt.Fprintln(s.err, "brood: "+text)
	}
	if t.Read.Form == nil {
		fmt.Fprint(s.err, missingForm(x.what, x.set))
	}
	if x.top, err = topCount(x.top, t.Net); err != nil {
		return err
	}
	kernels := ""
	write := func(w io.Writer) (err error) {
		kernels, err = predictions(ctx, w, t, asked, x.top, x.threads)
		return err
	}
	if x.output == "-" {
		err = write(exact(s.out))
	} else {
		err = writeFile(x.output, x.force, write)
	}
	if err != nil {
		return err
	}
	noteKernels(s, x.what, t, kernels)
	if x.output == "-" {
		return nil
	}
	fmt.Fprintf(s.out, "%s: %s of %s, predicted by %s\n", x.output, textfmt.Count(len(asked.IDs), "sample"), x.set,
		t.Net.Name)
	return nil
}

// topCount returns the number of likeliest classes to write for each sample; 0 means a column for each class. It fails
// if top does not fit the model.
func topCount(top int, m *models.Model) (int, error) {
	switch {
	case top == 0 && m.Classes > tableClasses:
		return topClasses, nil
	case top == 0:
		return 0, nil
	case m.Classes == 0:
		return 0, usage("--top %d: model %s predicts no classes; omit it", top, m.Name)
	case top < 0 || top > m.Classes:
		return 0, usage("--top %d: model %s has %d classes; give 1 to %d", top, m.Name, m.Classes, m.Classes)
	}
	return top, nil
}

// likeliest returns the n classes with the largest probabilities, in descending order. Ties keep the order of classes.
func likeliest(p []float64, n int) []int {
	order := consecutive(0, len(p))
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[b], p[a]) })
	return order[:n]
}

// predictions writes a CSV row for each sample, with all classes or, if top > 0, with the top likeliest ones. It
// returns the name of the kernels that computed them. Probabilities have nine digits, the precision of float32 results.
func predictions(ctx context.Context, w io.Writer, t *evaluate.Model, asked *data.Asked, top,
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
	head = slices.Insert(head, 1, asked.Carried...)
	headed := false
	kernels, err = t.Predict(ctx, asked.Set, asked.IDs, threads, func(at int, p [][]float64) error {
		if !headed { // only now: nothing is written if the model rejects the data
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
				row = append(append(row, tagCells(of)), answered...)
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
					digits = 14 // values far from zero need more than nine to differ
				}
				row = append(row, strconv.FormatFloat(v, 'g', digits, 64))
			}
			if t.Net.Regression() {
				row = append(row, answered...)
			}
			if asked.Carried != nil {
				row = slices.Insert(row, 1, asked.CarriedCells[at+i]...)
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

// tagCells formats a multi-label prediction like labels in several columns: 1 for each class with a probability above
// 0.5, else 0, separated by commas.
func tagCells(p []float64) string {
	out := make([]string, len(p))
	for c, v := range p {
		if out[c] = "0"; v > 0.5 {
			out[c] = "1"
		}
	}
	return strings.Join(out, ",")
}

// predictedColumns returns the columns of a regression: the sample, one prediction for each output, and the label if
// answered. Columns of several outputs have the names of the outputs, or numbers if names is nil.
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
