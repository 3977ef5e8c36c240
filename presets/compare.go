package presets

import "math"

// Comparison is the difference of a metric between two samples.
type Comparison struct {
	Difference Estimate // mean of a - b
	Low, High  float64  // 95 % confidence interval of Difference
	Test       Test
	T, P       float64 // two-sided
	// Effect is Difference in standard deviations: of the differences for pairs (d_z), else of the pooled samples
	// (Cohen's d).
	Effect float64
	// SeedsNeeded is the number of seeds that decide the order with a probability of 80 % if the measured values are the
	// true ones, see [Finding].
	SeedsNeeded int
}

// Compare compares two samples over the pairs of equal seeds, or as independent samples if fewer than two are common.
func Compare(a, b Sample) Comparison {
	d, test := minus(a, b, 0)
	q := condition{Estimate: d, test: test, order: true}
	half := d.Needed() * d.Error
	c := Comparison{
		Difference: d,
		Low:        d.Value - half,
		High:       d.Value + half,
		Test:       test,
		T:          q.t(),
		P:          q.p(),
		Effect:     d.Value / (d.Error * math.Sqrt(d.Freedom+1)),
	}
	if test == Welch {
		u, v := a.Estimate(), b.Estimate()
		c.Effect = d.Value / math.Sqrt((u.Error*u.Error*float64(len(a))+v.Error*v.Error*float64(len(b)))/2)
	}
	c.SeedsNeeded = seedsNeeded(func(m int) []condition {
		d, _ := minus(a, b, m)
		return []condition{{d, test, true}}
	})
	return c
}

// Decided reports whether the difference is decided at the level of every verdict.
func (c Comparison) Decided() bool { return c.P <= Level }
