package presets

import "math"

// minus returns the mean of a - b: over the pairs of equal seeds if there are two or more, else of independent samples.
// If some run of a pair missed its target, the means over the pairs are compared as such: only if all of one side
// missed and none of the other is the difference known. seeds is as in [Sample.withSeeds].
func minus(a, b Sample, seeds int) (Estimate, Test) {
	x, y := common(a, b)
	switch {
	case len(x) < 2:
		return a.withSeeds(seeds).Minus(b.withSeeds(seeds)), Welch
	case x.Missed()+y.Missed() > 0:
		return x.withSeeds(seeds).Minus(y.withSeeds(seeds)), Paired
	}
	d := Sample{}
	for seed := range x {
		d[seed] = x[seed] - y[seed]
	}
	return d.withSeeds(seeds), Paired
}

// over returns the mean of a divided by the mean of b, of pairs or of independent samples as minus. Its error is a
// first-order approximation: of the residuals (a - r b) / mean(b).
func over(a, b Sample, seeds int) (Estimate, Test) {
	x, y := common(a, b)
	switch {
	case len(x) < 2:
		return a.withSeeds(seeds).Over(b.withSeeds(seeds)), Welch
	case x.Missed()+y.Missed() > 0:
		return x.withSeeds(seeds).Over(y.withSeeds(seeds)), Paired
	}
	of := y.Mean()
	if of == 0 {
		return Estimate{math.NaN(), math.NaN(), math.NaN()}, Paired
	}
	r, rest := x.Mean()/of, Sample{}
	for seed := range x {
		rest[seed] = (x[seed] - r*y[seed]) / of
	}
	e := rest.withSeeds(seeds)
	e.Value = r
	return e, Paired
}

// common returns both samples restricted to the seeds that they share.
func common(a, b Sample) (x, y Sample) {
	x, y = Sample{}, Sample{}
	for seed := range a {
		if v, ok := b[seed]; ok {
			x[seed], y[seed] = a[seed], v
		}
	}
	return x, y
}
