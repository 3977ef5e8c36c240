package presets

import (
	"math"
	"strings"
	"testing"
)

// seeds returns a sample with the seeds 1, 2, ...
func seeds(values ...float64) Sample { return from(1, values...) }

// apart returns a sample with other seeds than [seeds].
func apart(values ...float64) Sample { return from(1001, values...) }

func from(first int, values ...float64) Sample {
	s := Sample{}
	for i, x := range values {
		s[first+i] = x
	}
	return s
}

func TestSample(t *testing.T) {
	e := seeds(1, 2, 3, 6).Estimate()
	if e.Value != 3 || math.Abs(e.Error-math.Sqrt(14.0/3/4)) > 1e-12 || e.Freedom != 3 {
		t.Errorf("the estimate is %+v", e)
	}
	if e := seeds(5).Estimate(); e.Error == e.Error || !math.IsInf(e.Needed(), 1) {
		t.Errorf("one seed has a standard error of %g and decides at %g", e.Error, e.Needed())
	}
}

// TestMissed: a run that missed its target has the figure +Inf. If all runs of one side missed and none of the other,
// the claim is decided; if some missed, the mean is unknown, and two sides that always miss do not differ.
func TestMissed(t *testing.T) {
	never := math.Inf(1)
	some, all, none := seeds(3, never, 4), seeds(never, never, never), seeds(3, 5, 4)
	for _, c := range []struct {
		claim    Claim
		s, other Sample
		want     Verdict
	}{
		{Claim{Below: "b"}, none, all, Holds},
		{Claim{Below: "b"}, all, none, Contradicts},
		{Claim{Below: "b"}, all, all, Undecided},
		{Claim{Below: "b"}, some, none, Undecided},
		{Claim{Below: "b"}, none, some, Undecided},
		{Claim{Below: "b"}, seeds(4), seeds(never), Undecided},
		{Claim{AtMost: new(9.0)}, some, nil, Undecided},
		{Claim{AtMost: new(9.0)}, all, nil, Contradicts},
		{Claim{AtMost: new(9.0)}, seeds(never), nil, Undecided},
		{Claim{Near: "b", Margin: 1}, all, all, Undecided},
		{Claim{Ratio: new(2.0), Of: "b"}, none, all, Undecided},
	} {
		c.claim.Metric = "node_samples"
		if f := c.claim.Judge(c.s, map[string]Sample{"b": c.other}); f.Verdict != c.want {
			t.Errorf("%v, %s %v: %s by %g of %g, want %s", c.s, c.claim.States(), c.other, f.Verdict, f.T, f.Needed, c.want)
		}
	}
	if some.Missed() != 1 || all.Missed() != 3 || none.Missed() != 0 {
		t.Errorf("missed: %d, %d, %d", some.Missed(), all.Missed(), none.Missed())
	}
}

// TestNeeded: quantiles of Student's t, compared with tables.
func TestNeeded(t *testing.T) {
	for freedom, want := range map[float64]float64{1: 12.706, 2: 4.303, 4: 2.776, 9: 2.262, 30: 2.042,
		math.Inf(1): 1.960} {
		if got := (Estimate{Error: 1, Freedom: freedom}).Needed(); math.Abs(got-want) > 6e-4 {
			t.Errorf("with %g degrees of freedom %g standard errors, want %g", freedom, got, want)
		}
	}
}

// TestWelch: a difference and a ratio worked out by hand. The variances of the means are 1 and 4, with 3 and 5 degrees
// of freedom: together 25 / (1/3 + 16/5) = 7.075. The ratio 10 / 5 has the error sqrt((1/5)^2 + (2*2/5)^2) = 0.8246.
func TestWelch(t *testing.T) {
	a, b := Estimate{10, 1, 3}, Estimate{5, 2, 5}
	if d := a.Minus(b); d.Value != 5 || math.Abs(d.Error-math.Sqrt(5)) > 1e-12 ||
		math.Abs(d.Freedom-25/(1.0/3+16.0/5)) > 1e-12 {
		t.Errorf("the difference is %+v", d)
	}
	if r := a.Over(b); r.Value != 2 || math.Abs(r.Error-math.Sqrt(0.04+0.64)) > 1e-12 ||
		math.Abs(r.Freedom-0.68*0.68/(0.04*0.04/3+0.64*0.64/5)) > 1e-9 {
		t.Errorf("the ratio is %+v", r)
	}
	if r := a.Over(Estimate{}); r.Value == r.Value {
		t.Errorf("a ratio to nothing is %+v", r)
	}
	if d := seeds(3, 3).Estimate().Minus(seeds(1, 1, 1).Estimate()); d.Error != 0 || !math.IsInf(d.Freedom, 1) {
		t.Errorf("what does not scatter differs by %+v", d)
	}
}

// TestJudge: a claim holds, is contradicted, or is not decided by measurements; counted quantities are accounting.
func TestJudge(t *testing.T) {
	// all others have other seeds: they are independent
	others := map[string]Sample{"worse": apart(3.0, 3.1, 2.9), "alike": apart(2.0, 2.4, 1.6),
		"full": apart(100, 100, 100), "once": apart(3), "slow": apart(90, 100, 110)}
	s := seeds(2.0, 2.1, 1.9) // 2 with a standard error of 0.0577: with two degrees of freedom 0.248 decide
	for _, c := range []struct {
		claim Claim
		s     Sample
		want  Verdict
	}{
		{Claim{AtMost: new(2.25)}, s, Holds},
		{Claim{AtMost: new(2.24)}, s, Undecided},
		{Claim{AtMost: new(1.76)}, s, Undecided},
		{Claim{AtMost: new(1.75)}, s, Contradicts},
		{Claim{AtLeast: new(2.25)}, s, Contradicts},
		{Claim{AtLeast: new(1.0), AtMost: new(3.0)}, s, Holds},
		{Claim{AtLeast: new(1.0), AtMost: new(2.1)}, s, Undecided},
		{Claim{AtMost: new(3.0)}, seeds(math.NaN(), 1), Contradicts},
		{Claim{AtMost: new(3.0)}, seeds(2), Undecided},
		{Claim{Below: "worse"}, s, Holds},
		{Claim{Below: "alike"}, s, Undecided},
		{Claim{Below: "worse"}, seeds(2), Undecided},
		{Claim{Below: "once"}, s, Undecided},
		{Claim{Below: "worse"}, seeds(3.9, 4, 4.1), Contradicts},
		// 0.2 apart with an error of 0.0816: 2.45 standard errors, where four degrees of freedom need 2.78.
		{Claim{Below: "worse"}, seeds(2.7, 2.8, 2.9), Undecided},
		{Claim{Below: "worse"}, seeds(2.65, 2.75, 2.85), Holds},
		{Claim{Near: "worse", Margin: 0.5}, seeds(3.1, 3.2, 3.0), Holds},
		{Claim{Near: "worse", Margin: 0.3}, seeds(3.1, 3.2, 3.0), Undecided},
		{Claim{Near: "worse", Margin: 0.5}, seeds(4.1, 4.2, 4.0), Contradicts},
		{Claim{Ratio: new(0.02), Of: "full"}, s, Undecided},
		{Claim{Ratio: new(0.02), Of: "full", Within: 0.2}, s, Holds},
		{Claim{Ratio: new(0.04), Of: "full", Within: 0.2}, s, Contradicts},
		// The measured run time of Hybrid-ES: .78 +- .16 is no evidence for 1.2 within a half.
		{Claim{Ratio: new(1.208), Of: "slow", Within: 0.5}, seeds(50, 78, 106), Undecided},
		{Claim{Metric: "bytes", Ratio: new(0.02), Of: "full"}, seeds(2, 2), Accounting},
		{Claim{Metric: "bytes", Ratio: new(0.03), Of: "full"}, seeds(2, 2), Contradicts},
		{Claim{Metric: "bytes_per_eval", AtMost: new(4.0), AtLeast: new(4.0)}, seeds(4), Accounting},
		{Claim{Metric: "memory", AtMost: new(4.0)}, seeds(5), Contradicts},
		{Claim{Metric: "bytes", Below: "full"}, seeds(100, 100, 100), Contradicts},
		{Claim{Metric: "bytes", Below: "full"}, seeds(99, 99, 99), Accounting},
	} {
		if got := c.claim.Judge(c.s, others); got.Verdict != c.want {
			t.Errorf("%s of %v: %+v, want %s", c.claim.States(), c.s, got, c.want)
		}
	}
	if f := (Claim{Below: "worse"}).Judge(s, others); math.Abs(f.T-1/math.Sqrt(0.02/3)) > 1e-9 ||
		math.Abs(f.Freedom-4) > 1e-9 || math.Abs(f.Needed-2.776) > 1e-3 {
		t.Errorf("the finding is %+v", f)
	}
}

// TestSlope: the least-squares line of given points, and a law over presets of 3, 4, 6 and 8 members that the points
// follow or not.
func TestSlope(t *testing.T) {
	e := slope([]float64{0, 1, 2, 3}, []float64{1, 2.9, 5.1, 7})
	if math.Abs(e.Value-2.02) > 1e-12 || math.Abs(e.Error-math.Sqrt(0.018/2/5)) > 1e-12 {
		// the squares of the residuals 0.03, -0.09, 0.09 and -0.03 add up to 0.018
		t.Errorf("the slope is %+v", e)
	}
	at := func(exponent, noise float64) map[string]Sample {
		out := map[string]Sample{"least": seeds(5)}
		for i, name := range []string{"parle-lenet", "mnist-pesgd", "gossip-popsgd"} {
			p, err := Load(name)
			if err != nil {
				t.Fatal(err)
			}
			y := math.Pow(float64(p.Options.Members), exponent)
			out[name] = seeds(5+y*(1+noise*float64(i%2)), 5+y*(1-noise*float64(i%2)), 5+y)
		}
		return out
	}
	c := Claim{Slope: new(-1.0), Over: []string{"parle-lenet", "mnist-pesgd", "gossip-popsgd"}, Least: "least"}
	for _, x := range []struct {
		exponent, noise float64
		want            Verdict
	}{{-1, 0.02, Holds}, {-0.5, 0.02, Contradicts}, {-1, 0.9, Undecided}} {
		if got := c.Judge(nil, at(x.exponent, x.noise)); got.Verdict != x.want {
			t.Errorf("exponent %g with noise %g: %s (%+v), want %s", x.exponent, x.noise, got.Verdict,
				c.Measured(nil, at(x.exponent, x.noise)), x.want)
		}
	}
}

// TestClaimsAreChecked: a claim that cannot fail, or that compares with an unknown preset, is rejected.
func TestClaimsAreChecked(t *testing.T) {
	for text, says := range map[string]string{
		"[[claims]]\nmetric = \"test_error\"\nat_most = 1":                                           "source",
		"[[claims]]\nsource = \"Fig. 1\"\nmetric = \"beauty\"\nat_most = 1":                          "beauty",
		"[[claims]]\nsource = \"Fig. 1\"\nmetric = \"test_error\"\npublished = 1.0":                  "has no condition",
		"[[claims]]\nsource = \"Fig. 1\"\nmetric = \"test_error\"\nratio = 1.0":                      "both ratio and of",
		"[[claims]]\nsource = \"Fig. 1\"\nmetric = \"test_loss\"\nslope = -1.0\nover = [\"leader\"]": "both slope and over",
		"[[claims]]\nsource = \"Fig. 1\"\nmetric = \"test_error\"\nbelow = \"nope\"":                 "nope",
		"[[claims]]\nsource = \"Fig. 1\"\nmetric = \"test_error\"\nnear = \"leader\"":                "both near and a margin",
		"[[claims]]\nsource = \"Fig. 1\"\nmetric = \"test_error\"\nat_most = 1\nbelow = \"leader\"":  "several conditions",
		"[tuned]\nby = \"beauty\"\ntrials = 3":                                                       "by = \"beauty\"",
		"[tuned]\nby = \"test_error\"":                                                               "trials = 0",
		"[tuned]\nby = \"test_error\"\ntrials = 2\nseeds = [0]":                                      "seeds = [0]",
		"[tuned]\nby = \"test_error\"\ntrials = 2\ncolour = 1":                                       "colour",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", text, err)
		}
	}
	all, err := Studies()
	if err != nil {
		t.Fatal(err)
	}
	for study, names := range all {
		claims := 0
		for _, name := range names {
			p, err := Load(name)
			if err != nil {
				t.Error(err)
			}
			if p.Study == study {
				claims += len(p.Claims)
			}
		}
		if claims == 0 {
			t.Errorf("the study %s claims nothing", study)
		}
	}
}
