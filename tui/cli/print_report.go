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
	"brood/tui"
)

// worstShown is how many classes, outputs and mistakes the end of a run tells of: `brood eval` has all of them.
const worstShown = 3

// mistakesTold is how many pairs of classes the summary has in JSON.
const mistakesTold = 10

// asked is what a run that is over says of its test set, and what it took to ask. report is nil where nobody asked, or
// there is nothing to tell.
type asked struct {
	report *report.Report
	took   time.Duration
	mixed  string // where other kernels asked than those of the run, and it matters
	err    error
}

// patience is how long a test set is asked without a word.
const patience = time.Second

// ask has the test set of a run asked whose kernels are known, until a signal says that nobody waits for it.
func ask(ctx context.Context, of func(context.Context) (*report.Report, error), kernels string, signals <-chan os.Signal, note func(string)) (a asked) {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	go func() {
		select {
		case <-signals:
			leave()
		case <-ctx.Done():
		}
	}()
	told := make(chan struct{})
	late := time.AfterFunc(patience, func() {
		defer close(told)
		note("asking the test set; Ctrl-C leaves it out")
	})
	from := time.Now()
	a.report, a.err = of(ctx)
	if a.took = time.Since(from); errors.Is(a.err, context.Canceled) {
		a.err = nil
	}
	if !late.Stop() {
		<-told
	}
	if a.report != nil {
		a.mixed = host.Mixed(kernels, a.report.Kernels)
	}
	return a
}

// object is what the summary says of it in JSON.
func (a asked) object() map[string]any {
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

// mistakes are the pairs of classes that are taken for each other most, with their names.
func mistakes(x *report.Report) []map[string]any {
	out := []map[string]any{}
	pairs := x.Mistaken()
	for _, p := range pairs[:min(len(pairs), mistakesTold)] {
		out = append(out, map[string]any{"class": x.Classes[p.Is].Name, "as": x.Classes[p.As].Name, "samples": p.Samples})
	}
	return out
}

// write prints the worst of it as lines of the summary of the session in dir.
func (a asked) write(w io.Writer, dir string) {
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
	fmt.Fprintf(w, "               of %s test samples, asked in %s; all of it: brood eval %s\n",
		grouped(x.Samples), clockTime(a.took.Seconds()), called(dir))
	if a.mixed != "" {
		fmt.Fprintf(w, "               %s\n", a.mixed)
	}
}

func writeClasses(w io.Writer, x *report.Report) {
	m := x.Macro()
	lowest := slices.DeleteFunc(x.Lowest(), func(c report.ClassScore) bool { return c.Samples == 0 })
	text := ""
	if wrong, ok := x.Wrong(); ok {
		text = tui.ScoreText(100*wrong, true) + " wrong in the end, "
	}
	fmt.Fprintf(w, "  classes      %smacro F1 %s, recall %s, precision %s\n", text, tui.Known(m.F1), tui.Known(m.Recall), tui.Known(m.Precision))
	for i, c := range lowest[:min(len(lowest), worstShown)] {
		head := ""
		if i == 0 {
			head = "lowest F1"
		}
		fmt.Fprintf(w, "  %-12s %s: %s, recall %s, precision %s\n", head, c.Name, tui.Known(c.F1), tui.Known(c.Recall), tui.Known(c.Precision))
	}
	var wrong []string
	pairs := x.Mistaken()
	for _, p := range pairs[:min(len(pairs), worstShown)] {
		wrong = append(wrong, fmt.Sprintf("%s for %s %s", x.Classes[p.Is].Name, x.Classes[p.As].Name, grouped(p.Samples)))
	}
	if len(wrong) > 0 {
		fmt.Fprintf(w, "  mistaken     %s\n", strings.Join(wrong, ", "))
	}
	fmt.Fprintf(w, "  calibration  %.2f %% expected error\n", 100*x.Calibration.Error)
}

// writeOutputs tells of the outputs that are explained least.
func writeOutputs(w io.Writer, x *report.Report) {
	for i, k := range x.LeastExplained()[:min(len(x.Outputs), worstShown)] {
		o, head, of := x.Outputs[k], "", ""
		if i == 0 {
			head = "outputs"
		}
		if len(x.Outputs) > 1 {
			of = o.Name + ": "
		}
		fmt.Fprintf(w, "  %-12s %sR2 %s, RMSE %s, MAE %s\n", head, of, tui.Known(o.R2), tui.Number(o.RMSE), tui.Number(o.MAE))
	}
}
