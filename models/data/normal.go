package data

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

func finite(v float32) bool { return math.Float32bits(v)&0x7f800000 != 0x7f800000 }

// measure sets the mean and the deviation of each channel to those of the training samples. Flat bytes, the pixels of a
// picture written as a table, keep the range 0 to 1: their borders hardly vary and would be blown up.
func (s *Set) measure() {
	s.Mean, s.Std = make([]float32, s.Shape[0]), make([]float32, s.Shape[0])
	for c := range s.Mean {
		var mean, std float64
		switch {
		case s.values != nil:
			mean, std = s.spreadOfValues(c)
		case len(s.Shape) == 3:
			mean, std = s.spreadOfBytes(c)
		}
		s.Mean[c], s.Std[c] = float32(mean), float32(std)
		if !(s.Std[c] > 0) || !finite(1/s.Std[c]) { // a constant channel
			s.Std[c] = 1
		}
	}
}

// spreadOfValues goes over the samples twice, mean first, so that large offsets cost no digits. Products are rounded
// before they are added: every platform gets the same bits.
func (s *Set) spreadOfValues(c int) (mean, std float64) {
	plane := s.features / s.Shape[0]
	n := float64(len(s.train) * plane)
	for _, id := range s.train {
		for _, v := range s.values[int(id)*s.features+c*plane:][:plane] {
			mean += float64(v)
		}
	}
	mean /= n
	for _, id := range s.train {
		for _, v := range s.values[int(id)*s.features+c*plane:][:plane] {
			d := float64(v) - mean
			std += float64(d * d)
		}
	}
	return mean, math.Sqrt(std / n)
}

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

// normalise is x <- (x - mean)/std, of bytes through a table.
func (s *Set) normalise() error {
	if s.values == nil {
		s.scale = make([][256]float32, s.Shape[0])
		for c := range s.scale {
			for p := range s.scale[c] {
				s.scale[c][p] = (float32(p)/255 - s.Mean[c]) / s.Std[c]
			}
		}
		return nil
	}
	plane := s.features / s.Shape[0]
	for i, v := range s.values {
		c := i % s.features / plane
		s.values[i] = float32((float64(v) - float64(s.Mean[c])) / float64(s.Std[c]))
		if !finite(s.values[i]) {
			return fmt.Errorf("%s has the value %g, too far from the mean of its feature, %g", s.place(i/s.features), v, s.Mean[c])
		}
	}
	return nil
}

// Normalisation says in words how samples become a model's input.
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
	if slices.ContainsFunc(s.Mean, func(m float32) bool { return m != 0 }) || slices.ContainsFunc(s.Std, func(d float32) bool { return d != 1 }) {
		steps = append(steps, fmt.Sprintf("minus %s, divided by %s", list(s.Mean), list(s.Std)))
	}
	return strings.Join(steps, ", then ")
}

func list(v []float32) string {
	var out []string
	for _, x := range v {
		out = append(out, fmt.Sprintf("%.4g", x))
	}
	return strings.Join(out, " ")
}
