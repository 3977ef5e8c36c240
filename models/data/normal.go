package data

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

func finite(v float32) bool { return math.Float32bits(v)&0x7f800000 != 0x7f800000 }

// untrained is the deviation of a feature that is constant in training, such as that of unknown texts: another value
// then has no effect, since nothing was learned about it.
const untrained = 1e9

// measure sets the mean and standard deviation of each channel from the training samples. Flat bytes, the pixels
// of pictures written as a table, are scaled only to 0..1: each pixel is a feature there, and pixels at the border
// hardly vary, so that standardising would amplify them.
func (s *Set) measure() {
	s.Mean, s.Std = make([]float64, s.Shape[0]), make([]float64, s.Shape[0])
	for c := range s.Mean {
		switch {
		case s.doubles != nil:
			s.Mean[c], s.Std[c] = spread(s, s.doubles, c)
		case s.values != nil:
			s.Mean[c], s.Std[c] = spread(s, s.values, c)
		case len(s.Shape) == 3:
			s.Mean[c], s.Std[c] = s.spreadOfBytes(c)
		}
		if !(s.Std[c] > 0) || !finite(float32(1/s.Std[c])) { // a constant channel
			s.Std[c] = 1
			if s.columns.encoded != nil {
				s.Std[c] = untrained
			}
		}
	}
}

// spread returns the mean and standard deviation of channel c over the training samples; the deviation is 0 if all
// values are equal. It makes two passes, mean first, so that large offsets lose no precision. Products are rounded
// before they are added (no fused multiply-add), so that all platforms compute the same bits.
func spread[F float32 | float64](s *Set, all []F, c int) (mean, std float64) {
	plane := s.features / s.Shape[0]
	n := float64(len(s.train) * plane)
	first := all[int(s.train[0])*s.features+c*plane]
	equal := true
	for _, id := range s.train {
		for _, v := range all[int(id)*s.features+c*plane:][:plane] {
			mean += float64(v)
			equal = equal && v == first
		}
	}
	if equal { // the rounded mean may differ from the value
		return float64(first), 0
	}
	mean /= n
	for _, id := range s.train {
		for _, v := range all[int(id)*s.features+c*plane:][:plane] {
			d := float64(v) - mean
			std += float64(d * d)
		}
	}
	return mean, math.Sqrt(std / n)
}

// spreadOfBytes returns the mean and standard deviation of channel c of bytes scaled to 0..1, from exact integer sums.
func (s *Set) spreadOfBytes(c int) (mean, std float64) {
	plane := s.features / s.Shape[0]
	var count [256]int64
	for _, id := range s.train {
		for _, p := range s.pixels[int(id)*s.features+c*plane:][:plane] {
			count[p]++
		}
	}
	var sum, squares int64
	for p, k := range count {
		sum += int64(p) * k
		squares += int64(p*p) * k
	}
	n := float64(len(s.train) * plane)
	mean = float64(sum) / n
	return mean / 255, math.Sqrt(max(0, float64(squares)/n-float64(mean*mean))) / 255
}

// normalise computes (x - mean)/std of all samples. For bytes it computes a table of the 256 values per channel
// instead.
func (s *Set) normalise() error {
	if !s.numeric() {
		s.scale = make([][256]float32, s.Shape[0])
		for c := range s.scale {
			for p := range s.scale[c] {
				s.scale[c][p] = (float32(p)/255 - float32(s.Mean[c])) / float32(s.Std[c])
			}
		}
		return nil
	}
	if s.doubles == nil {
		return normaliseValues(s, s.values)
	}
	doubles := s.doubles
	s.values, s.doubles = make([]float32, len(doubles)), nil
	return normaliseValues(s, doubles)
}

// normaliseValues sets s.values to (x - mean)/std of all, which may be s.values itself. It fails if a result is not
// finite.
func normaliseValues[F float32 | float64](s *Set, all []F) error {
	plane := s.features / s.Shape[0]
	for i, v := range all {
		c := i % s.features / plane
		s.values[i] = float32((float64(v) - s.Mean[c]) / s.Std[c])
		if !finite(s.values[i]) {
			return fmt.Errorf("%s has the value %g, too far from the mean of its feature, %g",
				s.sampleName(i/s.features), v, s.Mean[c])
		}
	}
	return nil
}

// Normalisation describes for the user how samples become a model's input.
func (s *Set) Normalisation() string {
	if s.Text {
		return "not at all: a byte is looked up by an embedding"
	}
	if s.values != nil && len(s.Shape) == 1 {
		return "each feature to mean 0 and deviation 1 over the training split"
	}
	var steps []string
	if s.values == nil {
		steps = append(steps, "bytes to 0..1")
	}
	if slices.ContainsFunc(s.Mean, func(m float64) bool { return m != 0 }) ||
		slices.ContainsFunc(s.Std, func(d float64) bool { return d != 1 }) {
		steps = append(steps, fmt.Sprintf("minus %s, divided by %s", list(s.Mean), list(s.Std)))
	}
	return strings.Join(steps, ", then ")
}

func list(v []float64) string {
	var out []string
	for _, x := range v {
		out = append(out, fmt.Sprintf("%.4g", x))
	}
	return strings.Join(out, " ")
}
