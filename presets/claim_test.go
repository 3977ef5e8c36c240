package presets

import (
	"math"
	"strings"
	"testing"
)

func ptr(x float64) *float64 { return &x }

func TestSample(t *testing.T) {
	s := Sample{1, 2, 3, 6}
	if s.Mean() != 3 || math.Abs(s.Error()-math.Sqrt(14.0/3/4)) > 1e-12 {
		t.Errorf("mean %g, standard error %g", s.Mean(), s.Error())
	}
	if e := (Sample{5}).Error(); e == e {
		t.Errorf("one seed has a standard error of %g", e)
	}
}

// TestJudge: a claim holds, is contradicted, or is not decided by what was measured.
func TestJudge(t *testing.T) {
	others := map[string]Sample{"worse": {3.0, 3.1, 2.9}, "alike": {2.0, 2.4, 1.6}, "full": {100, 100, 100}}
	s := Sample{2.0, 2.1, 1.9}
	for _, c := range []struct {
		claim Claim
		s     Sample
		want  Verdict
	}{
		{Claim{AtMost: ptr(2)}, s, Holds},
		{Claim{AtMost: ptr(1.99)}, s, Contradicts},
		{Claim{AtLeast: ptr(2.01)}, s, Contradicts},
		{Claim{AtLeast: ptr(1), AtMost: ptr(3)}, s, Holds},
		{Claim{AtMost: ptr(3)}, Sample{math.NaN()}, Contradicts},
		{Claim{Below: "worse"}, s, Holds},
		{Claim{Below: "alike"}, s, Unseparated},
		{Claim{Below: "worse"}, Sample{2}, Unseparated},
		{Claim{Below: "worse"}, Sample{3.9, 4, 4.1}, Contradicts},
		{Claim{Below: "worse", AtMost: ptr(1)}, s, Contradicts},
		{Claim{Ratio: ptr(0.02), Of: "full"}, s, Holds},
		{Claim{Ratio: ptr(0.021), Of: "full"}, s, Contradicts},
		{Claim{Ratio: ptr(0.021), Of: "full", Within: 0.1}, s, Holds},
	} {
		if got := c.claim.Judge(c.s, others); got != c.want {
			t.Errorf("%s of %v: %s, want %s", c.claim.States(), c.s, got, c.want)
		}
	}
}

// TestSlope: the least-squares line of made-up points, and a law over presets of 3, 4, 6 and 8 members that is or is not there.
func TestSlope(t *testing.T) {
	b, se := slope([]float64{0, 1, 2, 3}, []float64{1, 2.9, 5.1, 7})
	if math.Abs(b-2.02) > 1e-12 || math.Abs(se-math.Sqrt(0.018/2/5)) > 1e-12 { // the squares of the residuals 0.03, -0.09, 0.09 and -0.03 add up to 0.018
		t.Errorf("slope %g, standard error %g", b, se)
	}
	at := func(exponent, noise float64) map[string]Sample {
		out := map[string]Sample{"least": {5}}
		for i, name := range []string{"parle-lenet", "mnist-pesgd", "gossip-popsgd"} {
			p, err := Load(name)
			if err != nil {
				t.Fatal(err)
			}
			y := math.Pow(float64(p.Members), exponent)
			out[name] = Sample{5 + y*(1+noise*float64(i%2)), 5 + y*(1-noise*float64(i%2)), 5 + y}
		}
		return out
	}
	c := Claim{Slope: ptr(-1), Over: []string{"parle-lenet", "mnist-pesgd", "gossip-popsgd"}, Least: "least"}
	for _, x := range []struct {
		exponent, noise float64
		want            Verdict
	}{{-1, 0.02, Holds}, {-0.5, 0.02, Contradicts}, {-1, 0.9, Unseparated}} {
		if got := c.Judge(nil, at(x.exponent, x.noise)); got != x.want {
			b, se := c.Measured(nil, at(x.exponent, x.noise))
			t.Errorf("exponent %g with noise %g: %s (%g +- %g), want %s", x.exponent, x.noise, got, b, se, x.want)
		}
	}
}

// TestClaimsAreChecked: a claim that cannot fail, or that compares with what is not there, is no claim.
func TestClaimsAreChecked(t *testing.T) {
	for text, says := range map[string]string{
		"[[claims]]\nmetric = \"test_error\"\nat_most = 1":                                           "source",
		"[[claims]]\nsource = \"Fig. 1\"\nmetric = \"beauty\"\nat_most = 1":                          "beauty",
		"[[claims]]\nsource = \"Fig. 1\"\nmetric = \"test_error\"\npublished = 1.0":                  "nothing that could fail",
		"[[claims]]\nsource = \"Fig. 1\"\nmetric = \"test_error\"\nratio = 1.0":                      "both ratio and of",
		"[[claims]]\nsource = \"Fig. 1\"\nmetric = \"test_loss\"\nslope = -1.0\nover = [\"leader\"]": "both slope and over",
		"[[claims]]\nsource = \"Fig. 1\"\nmetric = \"test_error\"\nat_most = 1\nbelow = \"nope\"":    "nope",
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
