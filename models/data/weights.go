package data

import (
	"math"
	"strconv"
	"strings"

	"brood/models/usererr"
)

// Weights are the class weights of the training loss. The zero Weights applies none.
type Weights struct {
	Balanced bool // the weight of a class is 1 / its number of training samples
	// otherwise, weights by class name; 1 for a class without an entry. Classes is the order in which they were written
	Of      map[string]float64
	Classes []string
}

// Balanced is the option text for Weights.Balanced.
const Balanced = "balanced"

// ParseWeights parses the class-weights option: "balanced", or NAME=WEIGHT pairs separated by commas. An empty text or
// "none" is the zero Weights. A name may contain an equals sign but no comma.
func ParseWeights(text string) (w Weights, err error) {
	switch text {
	case "", "none":
		return w, nil
	case Balanced:
		return Weights{Balanced: true}, nil
	}
	w.Of = map[string]float64{}
	for _, word := range strings.Split(text, ",") {
		at := strings.LastIndex(word, "=")
		if at < 0 {
			return Weights{}, usererr.Errorf("class-weights = %q: write %s, or NAME=WEIGHT with commas between them, "+
				"such as rose=2,tulip=0.5", text, Balanced)
		}
		name := strings.TrimSpace(word[:at])
		x, err := strconv.ParseFloat(strings.TrimSpace(word[at+1:]), 64)
		if _, twice := w.Of[name]; twice {
			return Weights{}, usererr.Errorf("class-weights = %q: class %s is weighed twice", text, name)
		}
		if err != nil || !(x > 0) || math.IsInf(x, 0) {
			return Weights{}, usererr.Errorf("class-weights = %q: %s is no weight of class %s; give a number above 0",
				text, strings.TrimSpace(word[at+1:]), name)
		}
		w.Of[name] = x
		w.Classes = append(w.Classes, name)
	}
	return w, nil
}

// Any reports whether w is not the zero Weights.
func (w Weights) Any() bool { return w.Balanced || w.Of != nil }

// Weighted returns the same data with class weights w for the loss of training and validation samples. The weights are
// normalised to a mean of 1 over the training samples, so that they do not change the effective learning rate: with n
// training samples, n[c] of class c, and w[c] = 1/n[c] for balanced weights,
//
//	weight[c] = w[c] n / sum over k of w[k] n[k]
//
// Test samples have weight 1. The result shares memory and digest with s. The weights are computed for the current
// split. It fails for regressions and texts, for unknown classes and for weights beyond the range of float32.
func (s *Set) Weighted(w Weights) (*Set, error) {
	if !w.Any() {
		return s, nil
	}
	if s.Classes == 0 || s.Text {
		return nil, usererr.Errorf("class-weights: data %s have no classes to weigh; leave it out", s.Name)
	}
	class := map[string]int{}
	for c := range s.Classes {
		class[s.ClassName(c)] = c
	}
	each, count := make([]float64, s.Classes), make([]float64, s.Classes)
	for _, id := range s.train {
		count[s.labels[id]]++
	}
	for c := range each {
		each[c] = 1
		if w.Balanced {
			each[c] = 1 / max(1, count[c])
		}
	}
	for _, name := range w.Classes {
		c, ok := class[name]
		if !ok {
			return nil, usererr.Errorf("class-weights: data %s have no class %q; their classes are %s",
				s.Name, name, shorten(s.Form().Classes))
		}
		each[c] = w.Of[name]
	}
	sum := 0.0
	for c, x := range each {
		sum += float64(x * count[c])
	}
	t := *s
	t.weights = make([]float32, s.Classes)
	for c, x := range each {
		v := float64(x*float64(len(s.train))) / sum
		if t.weights[c] = float32(v); !finite(t.weights[c]) || t.weights[c] < 0x1p-126 {
			return nil, usererr.Errorf("class-weights: class %s of data %s weighs %g of the mean, which float32 does not hold; "+
				"bring the weights nearer to each other", s.ClassName(c), s.Name, v)
		}
	}
	return &t, nil
}

// Weighs reports whether the set has class weights.
func (s *Set) Weighs() bool { return s.weights != nil }

// Weight returns the weight of sample id in the loss.
func (s *Set) Weight(id int32) float32 {
	if s.weights == nil || len(s.test) > 0 && id >= s.test[0] {
		return 1
	}
	return s.weights[s.labels[id]]
}
