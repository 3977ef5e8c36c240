package presets

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// sleep holds the data of Student (Biometrika, 1908): the hours of sleep that ten patients gained by two drugs. R's
// help page of t.test has, for pairs, t = -4.0621 with 9 degrees of freedom, p = 0.002833 and the 95 % interval -2.4599
// to -0.7001; by Welch t = -1.8608 with 17.776 degrees of freedom, p = 0.07939 and -3.3655 to 0.2055.
var sleep = [2][]float64{{0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0, 2},
	{1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4}}

// TestPairs: presets are compared in pairs of equal seeds, and as independent samples if fewer than two are common.
func TestPairs(t *testing.T) {
	claim := Claim{Metric: "test_error", Below: "b"}
	for _, c := range []struct {
		what          string
		b             Sample
		test          Test
		verdict       Verdict
		t, freedom, p float64
	}{
		{"equal seeds", seeds(sleep[1]...), Paired, Holds, 4.0621, 9, 0.002833},
		{"other seeds", apart(sleep[1]...), Welch, Undecided, 1.8608, 17.776, 0.07939},
		{"one common seed", from(10, sleep[1]...), Welch, Undecided, 1.8608, 17.776, 0.07939},
	} {
		f := claim.Judge(seeds(sleep[0]...), map[string]Sample{"b": c.b})
		if f.Test != c.test || f.Verdict != c.verdict || math.Abs(f.T-c.t) > 6e-5 || math.Abs(f.Freedom-c.freedom) > 6e-4 ||
			math.Abs(f.P-c.p) > 6e-6 {
			t.Errorf("%s: %+v, want %+v", c.what, f, c)
		}
	}
	// Two common seeds of three: the differences are 1 and 3, their mean 2 has the error sqrt(2/2) = 1.
	f := claim.Judge(seeds(1, 2, 3), map[string]Sample{"b": from(2, 3, 6, 9)})
	if f.Test != Paired || math.Abs(f.T-2) > 1e-12 || f.Freedom != 1 {
		t.Errorf("two pairs: %+v", f)
	}
}

// TestRatioInPairs: a ratio worked out by hand. Of the means 2 and 1 the ratio is 2; the residuals a - 2b are 1 and -1,
// with an error of sqrt(2/2) = 1. A constant ratio has no error, however the values scatter.
func TestRatioInPairs(t *testing.T) {
	if r, test := over(seeds(3, 1), seeds(1, 1), 0); r.Value != 2 || math.Abs(r.Error-1) > 1e-12 || r.Freedom != 1 ||
		test != Paired {
		t.Errorf("%+v by %s", r, test)
	}
	if r, _ := over(seeds(2, 6, 18), seeds(1, 3, 9), 0); r.Value != 2 || r.Error != 0 {
		t.Errorf("a constant ratio is %+v", r)
	}
}

// TestPairsMissed: runs that missed their target decide only if all of one side did and none of the other, over the
// common seeds.
func TestPairsMissed(t *testing.T) {
	never, claim := math.Inf(1), Claim{Metric: "node_samples", Below: "b"}
	for _, c := range []struct {
		a, b Sample
		want Verdict
	}{
		{seeds(1, 2, 3), seeds(never, never, never), Holds},
		{seeds(never, never), seeds(3, 4), Contradicts},
		{seeds(1, 2), seeds(9, never), Undecided},
		{seeds(1, 2, never), seeds(9, 10.5), Holds}, // the run without a partner does not count
	} {
		if f := claim.Judge(c.a, map[string]Sample{"b": c.b}); f.Verdict != c.want {
			t.Errorf("%v below %v: %+v, want %s", c.a, c.b, f, c.want)
		}
	}
}

// TestSeedsNeededInPairs: differences with a mean and a deviation of 1 need ten pairs, as one sample does that is 1
// below a bound (see TestSeedsNeededByHand), however much both sides scatter together.
func TestSeedsNeededInPairs(t *testing.T) {
	a, b := Sample{}, Sample{}
	for seed, d := range scattered(4, 1, 1) {
		a[seed] = 100 * float64(seed*seed)
		b[seed] = a[seed] + d
	}
	if f := (Claim{Metric: "test_error", Below: "b"}).Judge(a, map[string]Sample{"b": b}); f.SeedsNeeded != 10 {
		t.Errorf("%+v, want 10 seeds", f)
	}
	if f := (Claim{Metric: "test_error", Below: "b"}).Judge(a,
		map[string]Sample{"b": elsewhere(b)}); f.SeedsNeeded <= MostSeeds {
		t.Errorf("independent samples: %+v, want over %d seeds", f, MostSeeds)
	}
}

// TestAdjust: p-values adjusted by hand, sorted 0.005, 0.01, 0.03 and 0.04. Holm multiplies them by 4, 3, 2 and 1, and
// no value is below the one before; Benjamini and Hochberg by 4, 2, 4/3 and 1, and none is above the next. Checks and
// claims without a p-value do not count.
func TestAdjust(t *testing.T) {
	var all []Judgement
	for _, p := range []float64{0.01, 0.04, 0.03, 0.005, math.NaN(), 0.001} {
		all = append(all, Judgement{Finding: Finding{Verdict: Holds, P: p, Holm: math.NaN(), BH: math.NaN()}})
	}
	all[5].Check = true
	Adjust(all)
	holm, bh := []float64{0.03, 0.06, 0.06, 0.02}, []float64{0.02, 0.04, 0.04, 0.02}
	for i := range holm {
		if f := all[i].Finding; math.Abs(f.Holm-holm[i]) > 1e-12 || math.Abs(f.BH-bh[i]) > 1e-12 {
			t.Errorf("p = %g: Holm %g, want %g; Benjamini and Hochberg %g, want %g", f.P, f.Holm, holm[i], f.BH, bh[i])
		}
	}
	for _, j := range all[4:] {
		if j.Finding.Holm == j.Finding.Holm || j.Finding.BH == j.Finding.BH {
			t.Errorf("%+v is adjusted", j)
		}
	}
	if alone, h, b := Decided(all); alone != 4 || h != 2 || b != 4 {
		t.Errorf("%d, %d and %d are decided, want 4, 2 and 4", alone, h, b)
	}
}

// TestChecks: bounds of our own, wide margins and marked claims are checks, whatever they show; bounds of the source,
// orders, narrow margins and counts are not.
func TestChecks(t *testing.T) {
	for _, c := range []struct {
		claim Claim
		want  string
	}{
		{Claim{AtMost: new(3.0)}, "check met"},
		{Claim{AtMost: new(1.0)}, "check missed"},
		{Claim{AtMost: new(2.05)}, "check not decided"},
		{Claim{AtMost: new(3.0), Published: new(3.0)}, "holds"},
		{Claim{AtMost: new(3.0), Published: new(2.0)}, "check met"},
		{Claim{Below: "b"}, "holds"},
		{Claim{Below: "b", Own: true}, "check met"},
		{Claim{Near: "b", Margin: 0.9}, "holds"},
		{Claim{Near: "b", Margin: 1}, "check met"}, // a quarter of 4
		{Claim{Metric: "bytes", AtMost: new(3.0)}, "accounting"},
	} {
		if c.claim.Metric == "" {
			c.claim.Metric = "test_error"
		}
		of := map[string]Measured{
			"a": {Figures: map[string]map[int]float64{c.claim.Metric: seeds(2, 2.1, 1.9)}},
			"b": {Figures: map[string]map[int]float64{c.claim.Metric: seeds(4, 4.1, 3.9)}},
		}
		all := Judge([]Preset{{Name: "a", Claims: []Claim{c.claim}}}, of, false)
		if got := all[0].Outcome(); got != c.want || Count(all)[got] == 0 && got != "holds" {
			t.Errorf("%s: %s, want %s", c.claim.States(), got, c.want)
		}
	}
}

// TestNotes: a verdict names unequal budgets and what weakens it: tuning by the test set, on judged seeds, or with
// other numbers of trials.
func TestNotes(t *testing.T) {
	of := func(samples, bytes float64) Measured {
		return Measured{Figures: map[string]map[int]float64{"samples": seeds(samples, samples), "bytes": seeds(bytes, bytes)}}
	}
	for _, c := range []struct {
		metric string
		a, b   Measured
		want   string
	}{
		{"test_error", of(300, 100), of(100, 100), "3 × the gradients and equal bytes"},
		{"test_loss", of(102, 4), of(100, 100), "equal gradients and 0.04 × the bytes"},
		{"test_loss", of(100, 0), of(100, 100), "equal gradients"},
		{"seconds", of(300, 100), of(100, 100), ""},
	} {
		if got := budget(c.metric, c.a, c.b); got != c.want {
			t.Errorf("%s: %q, want %q", c.metric, got, c.want)
		}
	}
	by := func(metric string, trials int, seeds ...int) *Tuned { return &Tuned{metric, trials, seeds} }
	for _, c := range []struct {
		a, b *Tuned
		want string
	}{
		{nil, nil, ""},
		{by("validation_error", 5, 100), by("validation_error", 5, 100), ""},
		{by("test_error", 5), nil, "tuned by test_error"},
		{by("validation_error", 5), by("test_error", 9, 2), "tuned by test_error; tuned on judged seeds; tuned with 5 trials against 9"},
	} {
		if got := strings.Join(TuningNotes(c.a, c.b, seeds(1, 2)), "; "); got != c.want {
			t.Errorf("%s beside %s: %q, want %q", c.a.Text(), c.b.Text(), got, c.want)
		}
	}
	p, err := Parse([]byte("[tuned]\nby = \"validation_loss\"\ntrials = 7\nseeds = [100, 101]"))
	if err != nil || p.Tuned.Text() != "validation_loss, 7" || !slices.Equal(p.Tuned.Seeds, []int{100, 101}) {
		t.Errorf("%+v, %v", p.Tuned, err)
	}
}

// TestCompare: the comparison of the data of Student, see sleep. The differences have the mean -1.58 and the deviation
// 1.2300: d_z = -1.2846. The samples have the variances 3.2006 and 4.0090: d = -1.58 / sqrt(3.6048) = -0.8322.
func TestCompare(t *testing.T) {
	for _, c := range []struct {
		b    Sample
		want Comparison
	}{
		{seeds(sleep[1]...), Comparison{Low: -2.4599, High: -0.7001, Test: Paired, T: -4.0621, P: 0.002833, Effect: -1.2846}},
		{apart(sleep[1]...), Comparison{Low: -3.3655, High: 0.2055, Test: Welch, T: -1.8608, P: 0.07939, Effect: -0.8322}},
	} {
		got, w := Compare(seeds(sleep[0]...), c.b), c.want
		for _, x := range [][2]float64{{got.Difference.Value, -1.58}, {got.Low, w.Low}, {got.High, w.High}, {got.T, w.T},
			{got.P, w.P}, {got.Effect, w.Effect}} {
			if math.Abs(x[0]-x[1]) > 6e-5 {
				t.Errorf("%s: %g, want %g", w.Test, x[0], x[1])
			}
		}
		if got.Test != w.Test || got.Decided() != (w.P < 0.05) || got.SeedsNeeded < 2 {
			t.Errorf("%+v", got)
		}
	}
}
