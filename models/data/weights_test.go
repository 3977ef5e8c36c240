package data

import (
	"math"
	"strings"
	"testing"
)

// uneven returns samples whose classes have shares of about 4/7, 2/7 and 1/7.
func uneven(t *testing.T) *Set {
	t.Helper()
	r := ramp(140)
	for i := range r.Labels {
		r.Labels[i] = []uint16{0, 1, 0, 2, 0, 1, 0}[i%7]
	}
	info := rampInfo()
	info.Names = []string{"rose", "tulip", "a=b"}
	s, err := New(info, r, Raster{Pixels: r.Pixels[:60], Labels: r.Labels[:10]}, 0.25)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestWeights: balanced weights are n / (classes n[c]), as in scikit-learn, and given ones are proportional; their mean
// over the training split is 1, validation samples use the same weights, and test samples have weight 1.
func TestWeights(t *testing.T) {
	s := uneven(t)
	if s.Weighs() || s.Weight(0) != 1 {
		t.Error("samples weigh something without weights")
	}
	count := make([]float64, 3)
	for _, id := range s.Train() {
		count[s.Label(id)]++
	}
	n := float64(len(s.Train()))
	for text, want := range map[string][3]float64{
		"balanced":            {n / (3 * count[0]), n / (3 * count[1]), n / (3 * count[2])},
		"rose=2,a=b=6":        {2, 1, 6},
		"tulip = 0.5, a=b=3 ": {1, 0.5, 3},
	} {
		w, err := ParseWeights(text)
		if err != nil {
			t.Fatal(err)
		}
		weighted, err := s.Weighted(w)
		if err != nil {
			t.Fatal(err)
		}
		scale := n / (want[0]*count[0] + want[1]*count[1] + want[2]*count[2])
		if text == "balanced" && math.Abs(scale-1) > 1e-12 {
			t.Fatalf("the definition has a mean of %v", 1/scale)
		}
		mean := 0.0
		for _, id := range weighted.Train() {
			mean += float64(weighted.Weight(id)) / n
		}
		if math.Abs(mean-1) > 1e-6 {
			t.Errorf("%s: the mean over the training samples is %v", text, mean)
		}
		for _, ids := range [][]int32{weighted.Train(), weighted.Validation()} {
			for _, id := range ids {
				if got := float64(weighted.Weight(id)); math.Abs(got-scale*want[s.Label(id)]) > 1e-6*got {
					t.Fatalf("%s: sample %d of class %d weighs %v, want %v", text, id, s.Label(id), got, scale*want[s.Label(id)])
				}
			}
		}
		for _, id := range weighted.Test() {
			if weighted.Weight(id) != 1 {
				t.Fatalf("%s: test sample %d weighs %v", text, id, weighted.Weight(id))
			}
		}
		if weighted.Digest() != s.Digest() || !weighted.Weighs() || s.Weighs() {
			t.Errorf("%s: weights changed the digest, or the original set", text)
		}
	}
}

func TestWeightsRefused(t *testing.T) {
	for text, wantErr := range map[string]string{
		"rose":                    "write balanced, or NAME=WEIGHT with commas between them",
		"rose=0":                  "0 is no weight of class rose; give a number above 0",
		"rose=-1":                 "-1 is no weight",
		"rose=nan":                "nan is no weight",
		"rose=inf":                "inf is no weight",
		"rose=1,rose=2":           "class rose is weighed twice",
		"rose=1,":                 "write balanced",
		"oak=2":                   `have no class "oak"; their classes are rose, tulip, a=b`,
		"rose=1e300,tulip=1e-300": "which float32 does not hold; bring the weights nearer to each other",
	} {
		w, err := ParseWeights(text)
		if err == nil {
			_, err = uneven(t).Weighted(w)
		}
		if err == nil || !strings.Contains(err.Error(), wantErr) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"", "none"} {
		if w, err := ParseWeights(text); err != nil || w.Any() {
			t.Errorf("%q: %+v, %v", text, w, err)
		}
	}
	numbers, err := New(Info{Name: "numbers", Shape: []int{1}, Outputs: 1},
		Raster{Values: []float32{1, 2, 3}, Labels: make([]uint16, 3), Targets: []float32{1, 2, 4}}, Raster{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := numbers.Weighted(Weights{Balanced: true}); err == nil ||
		!strings.Contains(err.Error(), "have no classes to weigh") {
		t.Error(err)
	}
}
