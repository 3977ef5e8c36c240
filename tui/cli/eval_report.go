package cli

import "brood/runtime/report"

// tableClasses is the largest number of classes with a full table. With more, JSON has the pairs of classes that were
// confused instead of the matrix, and `brood predict` writes only the likeliest classes.
const tableClasses = 256

func reportInto(line map[string]any, r *report.Report) {
	if r == nil {
		return
	}
	if r.Outputs != nil {
		var all []map[string]any
		for _, o := range r.Outputs {
			all = append(all, map[string]any{"output": o.Name, "rmse": finite(o.RMSE), "mae": finite(o.MAE), "r2": finite(o.R2)})
		}
		line["outputs"] = all
		return
	}
	object := func(c report.ClassScore) map[string]any {
		return map[string]any{"class": c.Name, "precision": finite(c.Precision), "recall": finite(c.Recall),
			"f1": finite(c.F1), "samples": c.Samples}
	}
	var classes, bins []map[string]any
	for _, c := range r.Classes {
		classes = append(classes, object(c))
	}
	for _, b := range r.Calibration.Bins {
		bins = append(bins, map[string]any{"from": b.From, "to": b.To, "samples": b.Samples, "confidence": b.Confidence,
			"right": b.Right})
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
