package cli

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"brood/runtime/host"
)

// What an evaluation draws: a matrix of so many classes, and of more the classes that are told apart worst.
const (
	matrixClasses = 12
	worstClasses  = 20
	tableClasses  = 256 // of more, JSON has the pairs that occur, and `brood predict` the likeliest classes alone
	reliability   = 20  // cells of a bar
)

// reportInto adds the figures of a report to a line of JSON.
func reportInto(line map[string]any, r *host.Report) {
	if r == nil {
		return
	}
	if r.Outputs != nil {
		var all []map[string]any
		for _, o := range r.Outputs {
			all = append(all, map[string]any{"rmse": finite(o.RMSE), "mae": finite(o.MAE), "r2": finite(o.R2)})
		}
		line["outputs"] = all
		return
	}
	object := func(c host.ClassScore) map[string]any {
		return map[string]any{"class": c.Name, "precision": finite(c.Precision), "recall": finite(c.Recall), "f1": finite(c.F1), "samples": c.Samples}
	}
	var classes, bins []map[string]any
	for _, c := range r.Classes {
		classes = append(classes, object(c))
	}
	for _, b := range r.Calibration.Bins {
		bins = append(bins, map[string]any{"from": b.From, "to": b.To, "samples": b.Samples, "confidence": b.Confidence, "right": b.Right})
	}
	line["classes"], line["macro"] = classes, object(r.Macro())
	if s := r.Several; s != nil {
		line["micro"], line["subset_error"], line["hamming_loss"] = object(s.Micro), s.Subset, s.Hamming
	} else if len(r.Classes) <= tableClasses {
		line["confusion"] = r.Matrix()
	} else {
		var pairs [][3]int64
		for _, x := range r.Confusion {
			pairs = append(pairs, [3]int64{int64(x.Is), int64(x.As), x.Samples})
		}
		line["confusion_pairs"] = pairs
	}
	line["calibration_error"], line["calibration"] = r.Calibration.Error, bins
}

// drawReport prints it for people.
func drawReport(w io.Writer, r *host.Report) {
	switch {
	case r == nil:
	case r.Outputs != nil:
		drawOutputs(w, r)
	case r.Several != nil:
		drawClasses(w, r)
		drawCalibration(w, r)
	default:
		drawClasses(w, r)
		drawConfusion(w, r)
		drawCalibration(w, r)
	}
}

func drawOutputs(w io.Writer, r *host.Report) {
	if len(r.Outputs) == 1 {
		fmt.Fprintf(w, "  MAE          %.6g\n", r.Outputs[0].MAE)
		return
	}
	t := newTable("  output", ">RMSE", ">MAE", ">R2")
	for k, o := range r.Outputs {
		t.row(fmt.Sprintf("  %d", k+1), fmt.Sprintf("%.6g", o.RMSE), fmt.Sprintf("%.6g", o.MAE), fmt.Sprintf("%.4f", o.R2))
	}
	fmt.Fprintln(w)
	t.write(w)
}

// share is a figure of a class.
func share(x float64) string {
	if math.IsNaN(x) {
		return "–"
	}
	return fmt.Sprintf("%.3f", x)
}

func drawClasses(w io.Writer, r *host.Report) {
	classes := slices.Clone(r.Classes)
	head := "  class"
	if len(classes) > worstClasses {
		classes = slices.DeleteFunc(classes, func(c host.ClassScore) bool { return math.IsNaN(c.F1) }) // which do not occur
		slices.SortStableFunc(classes, func(a, b host.ClassScore) int { return cmp.Compare(a.F1, b.F1) })
		classes, head = classes[:min(len(classes), worstClasses)], "  lowest F1"
	}
	t := newTable(head, ">precision", ">recall", ">F1", ">samples")
	classes = append(classes, r.Macro())
	if r.Several != nil {
		classes = append(classes, r.Several.Micro)
	}
	for _, c := range classes {
		t.row("  "+c.Name, share(c.Precision), share(c.Recall), share(c.F1), grouped(c.Samples))
	}
	fmt.Fprintln(w)
	t.write(w)
}

// drawConfusion is the matrix where it has few classes, else the pairs that are taken for each other most.
func drawConfusion(w io.Writer, r *host.Report) {
	if len(r.Classes) <= matrixClasses {
		heads := []string{"  is, taken for"}
		for _, c := range r.Classes {
			heads = append(heads, ">"+c.Name)
		}
		t := newTable(heads...)
		for i, row := range r.Matrix() {
			cells := []string{"  " + r.Classes[i].Name}
			for _, n := range row {
				cells = append(cells, grouped(n))
			}
			t.row(cells...)
		}
		fmt.Fprintln(w)
		t.write(w)
		return
	}
	pairs := slices.DeleteFunc(slices.Clone(r.Confusion), func(x host.Confused) bool { return x.Is == x.As })
	slices.SortStableFunc(pairs, func(a, b host.Confused) int { return cmp.Compare(b.Samples, a.Samples) })
	t := newTable("  is", "taken for", ">samples")
	for _, p := range pairs[:min(len(pairs), worstClasses)] {
		t.row("  "+r.Classes[p.Is].Name, r.Classes[p.As].Name, grouped(p.Samples))
	}
	fmt.Fprintln(w)
	t.write(w)
}

// drawCalibration has a bar of how often predictions of a bin are right, with a mark at how often they claim to be.
func drawCalibration(w io.Writer, r *host.Report) {
	fmt.Fprintf(w, "\n  expected calibration error %.2f %%\n", 100*r.Calibration.Error)
	of, right := "samples", "right"
	if r.Several != nil {
		of, right = "labels", "in class"
	}
	t := newTable("  probability", ">"+of, ">claimed", ">"+right, right+" #, claimed |")
	for _, b := range r.Calibration.Bins {
		if b.Samples == 0 {
			continue
		}
		bar := []rune(strings.Repeat("#", int(math.Round(b.Right*reliability))) + strings.Repeat(" ", reliability))[:reliability]
		bar[min(reliability-1, int(b.Confidence*reliability))] = '|'
		t.row(fmt.Sprintf("  %.2f to %.2f", b.From, b.To), grouped(b.Samples), fmt.Sprintf("%.1f %%", 100*b.Confidence), fmt.Sprintf("%.1f %%", 100*b.Right), string(bar))
	}
	t.write(w)
}
