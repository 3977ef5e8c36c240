package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"brood/runtime/host"
	"brood/runtime/report"
	"brood/tui/textfmt"
)

// maxWorst is how many classes, outputs and mistakes the summary of a run lists. `brood eval` lists all.
const maxWorst = 3

// maxMistakes is how many confused pairs of classes the summary has in JSON.
const maxMistakes = 10

// testReport is the evaluation of the test set after a run. report is nil if it was interrupted, failed, or there is
// nothing to report.
type testReport struct {
	report *report.Report
	took   time.Duration
	mixed  string // warning if other kernels than those of the run evaluated it and that matters; else ""
	err    error
}

// patience is how long evaluateTestSet runs before it prints a note.
const patience = time.Second

// evaluateTestSet evaluates the test set by calling of. If a signal cancels it, it returns no report and no error.
// kernels are the kernels of the run.
func evaluateTestSet(ctx context.Context, of func(context.Context) (*report.Report, error), kernels string,
	signals <-chan os.Signal, note func(string)) (a testReport) {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	go func() {
		select {
		case <-signals:
			leave()
		case <-ctx.Done():
		}
	}()
	noted := make(chan struct{})
	late := time.AfterFunc(patience, func() {
		defer close(noted)
		note("evaluating the test set; Ctrl-C skips it")
	})
	from := time.Now()
	a.report, a.err = of(ctx)
	if a.took = time.Since(from); errors.Is(a.err, context.Canceled) {
		a.err = nil
	}
	if !late.Stop() {
		<-noted
	}
	if a.report != nil {
		a.mixed = host.MixedKernels(kernels, a.report.Kernels)
	}
	return a
}

// object returns the summary of the report for JSON; nil without a report.
func (a testReport) object() map[string]any {
	if a.report == nil {
		return nil
	}
	line := map[string]any{"samples": a.report.Samples, "seconds": a.took.Seconds()}
	reportInto(line, a.report)
	delete(line, "confusion")
	delete(line, "confusion_pairs")
	delete(line, "calibration")
	if wrong, ok := a.report.Wrong(); ok {
		line["error"] = 100 * wrong
	}
	if a.report.Confusion != nil {
		line["mistaken"] = mistakes(a.report)
	}
	return line
}

// mistakes returns the most frequently confused pairs of classes, with their names.
func mistakes(x *report.Report) []map[string]any {
	out := []map[string]any{}
	pairs := x.Mistaken()
	for _, p := range pairs[:min(len(pairs), maxMistakes)] {
		out = append(out, map[string]any{"class": x.Classes[p.Is].Name, "as": x.Classes[p.As].Name, "samples": p.Samples})
	}
	return out
}

// write prints the worst classes or outputs as lines of the summary of the session in dir.
func (a testReport) write(w io.Writer, dir string) {
	x := a.report
	switch {
	case a.err != nil:
		fmt.Fprintf(w, "  classes      not measured: %v\n", a.err)
		return
	case x == nil:
		return
	case x.Outputs != nil:
		writeOutputs(w, x)
	default:
		writeClasses(w, x)
	}
	fmt.Fprintf(w, "               of %s test samples, evaluated in %s; full report: brood eval %s\n",
		textfmt.Grouped(x.Samples), clockTime(a.took.Seconds()), sessionArg(dir))
	if a.mixed != "" {
		fmt.Fprintf(w, "               %s\n", a.mixed)
	}
}

func writeClasses(w io.Writer, x *report.Report) {
	m := x.Macro()
	lowest := slices.DeleteFunc(x.Lowest(), func(c report.ClassScore) bool { return c.Samples == 0 })
	text := ""
	if wrong, ok := x.Wrong(); ok {
		text = textfmt.ScoreText(100*wrong, true) + " error in the end, "
	}
	fmt.Fprintf(w, "  classes      %smacro F1 %s, recall %s, precision %s\n", text, textfmt.NumberOrDash(m.F1),
		textfmt.NumberOrDash(m.Recall),
		textfmt.NumberOrDash(m.Precision))
	for i, c := range lowest[:min(len(lowest), maxWorst)] {
		head := ""
		if i == 0 {
			head = "lowest F1"
		}
		fmt.Fprintf(w, "  %-12s %s: %s, recall %s, precision %s\n", head, c.Name, textfmt.NumberOrDash(c.F1),
			textfmt.NumberOrDash(c.Recall),
			textfmt.NumberOrDash(c.Precision))
	}
	var wrong []string
	pairs := x.Mistaken()
	for _, p := range pairs[:min(len(pairs), maxWorst)] {
		wrong = append(wrong, fmt.Sprintf("%s for %s %s", x.Classes[p.Is].Name, x.Classes[p.As].Name,
			textfmt.Grouped(p.Samples)))
	}
	if len(wrong) > 0 {
		fmt.Fprintf(w, "  mistaken     %s\n", strings.Join(wrong, ", "))
	}
	fmt.Fprintf(w, "  calibration  %.2f %% expected error\n", 100*x.Calibration.Error)
}

// writeOutputs prints the outputs with the lowest R2.
func writeOutputs(w io.Writer, x *report.Report) {
	for i, k := range x.LeastExplained()[:min(len(x.Outputs), maxWorst)] {
		o, head, of := x.Outputs[k], "", ""
		if i == 0 {
			head = "outputs"
		}
		if len(x.Outputs) > 1 {
			of = o.Name + ": "
		}
		fmt.Fprintf(w, "  %-12s %sR2 %s, RMSE %s, MAE %s\n", head, of, textfmt.NumberOrDash(o.R2), textfmt.Number(o.RMSE),
			textfmt.Number(o.MAE))
	}
}
