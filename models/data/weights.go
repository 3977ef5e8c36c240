package data

import (
	"math"
	"strconv"
	"strings"

	"brood/models/usererr"
)

// Weights are what the classes weigh in the loss that is trained on. The zero Weights weighs nothing.
type Weights struct {
	Balanced bool // a class weighs 1 / its training samples
	// else what a class weighs, by name; 1 where a class has no entry. Classes is their order as it was written
	Of      map[string]float64
	Classes []string
}

// Balanced is the word for weights by the number of samples.
const Balanced = "balanced"

// ParseWeights reads what a person writes: balanced, or NAME=WEIGHT with commas between them; none, or nothing, is the
// zero Weights. A name may hold an equals sign, and no comma.
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
			return Weights{}, usererr.Errorf("class-weights = %q: write %s, or NAME=WEIGHT with commas between them, such as rose=2,tulip=0.5", text, Balanced)
		}
		name := strings.TrimSpace(word[:at])
		x, err := strconv.ParseFloat(strings.TrimSpace(word[at+1:]), 64)
		if _, twice := w.Of[name]; twice {
			return Weights{}, usererr.Errorf("class-weights = %q: class %s is weighed twice", text, name)
		}
		if err != nil || !(x > 0) || math.IsInf(x, 0) {
			return Weights{}, usererr.Errorf("class-weights = %q: %s is no weight of class %s; give a number above 0", text, strings.TrimSpace(word[at+1:]), name)
		}
		w.Of[name] = x
		w.Classes = append(w.Classes, name)
	}
	return w, nil
}

// Any says that something is weighed.
func (w Weights) Any() bool { return w.Balanced || w.Of != nil }

// Weighted is the same data, each of whose training and validation samples weighs in the loss what its class does, in
// proportion: the mean over the training samples is 1, so that learning rates keep their meaning. With n samples, n[c]
// of class c, and w[c] = 1/n[c] where they are balanced,
//
//	weight[c] = w[c] n / sum over k of w[k] n[k]
//
// Test samples weigh 1. It shares memory with s, and its digest is that of s; weights are of the present split.
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
			return nil, usererr.Errorf("class-weights: data %s have no class %q; their classes are %s", s.Name, name, some(s.Form().Classes))
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
			return nil, usererr.Errorf("class-weights: class %s of data %s weighs %g of the mean, which float32 does not hold; bring the weights nearer to each other", s.ClassName(c), s.Name, v)
		}
	}
	return &t, nil
}

// Weighs says that samples have weights.
func (s *Set) Weighs() bool { return s.weights != nil }

// Weight is what sample id weighs in the loss.
func (s *Set) Weight(id int32) float32 {
	if s.weights == nil || len(s.test) > 0 && id >= s.test[0] {
		return 1
	}
	return s.weights[s.labels[id]]
}
