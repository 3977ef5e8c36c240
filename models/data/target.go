package data

import (
	"fmt"
	"math"
)

// Targets are the standardised targets of sample id, one per output, or which of several classes it is in; nil where
// labels are classes, or there is no such sample. Read-only.
func (s *Set) Targets(id int32) []float32 {
	if s.targets == nil || id < 0 || int(id) >= len(s.labels) {
		return nil
	}
	return s.targets[int(id)*s.Outputs : (int(id)+1)*s.Outputs]
}

// Restore turns a standardised result of an output into the unit of its targets.
func (s *Set) Restore(output int, z float32) float64 {
	return float64(float64(z)*float64(s.TargetStd[output])) + float64(s.TargetMean[output])
}

// TargetVariance is the variance of an output's standardised targets over samples, about their own mean: what the best
// constant leaves unexplained, and R2 compares with. Products are rounded before they are added, as everywhere here.
func (s *Set) TargetVariance(ids []int32, output int) float64 {
	var mean, sum float64
	same := true
	for _, id := range ids {
		mean += float64(s.Targets(id)[output])
		same = same && s.Targets(id)[output] == s.Targets(ids[0])[output]
	}
	if same { // which rounding would hide
		return 0
	}
	mean /= float64(max(1, len(ids)))
	for _, id := range ids {
		d := float64(s.Targets(id)[output]) - mean
		sum += float64(d * d)
	}
	return sum / float64(max(1, len(ids)))
}

func (s *Set) checkTargets() error {
	if len(s.targets) != len(s.labels)*s.Outputs {
		return fmt.Errorf("data %s: %d targets for %d samples with %d outputs", s.Name, len(s.targets), len(s.labels), s.Outputs)
	}
	for i, v := range s.targets {
		switch {
		case !finite(v):
			return fmt.Errorf("%s has the target %v; leave it out or repair it", s.place(i/s.Outputs), v)
		case s.MultiLabel && v != 0 && v != 1:
			return fmt.Errorf("%s has the label %v for class %s; where a sample may be in several classes each label is 0 or 1", s.place(i/s.Outputs), v, s.ClassName(i%s.Outputs))
		}
	}
	return nil
}

// standardise is t <- (t - mean)/deviation, with those of the training samples where none are given. A target that is
// the same everywhere in training says nothing. Labels of several classes stay 0 and 1.
func (s *Set) standardise() error {
	if s.MultiLabel {
		return nil
	}
	if s.Outputs > 0 && s.TargetMean == nil {
		s.TargetMean, s.TargetStd = make([]float32, s.Outputs), make([]float32, s.Outputs)
		for k := range s.Outputs {
			mean, std := s.spreadOfTargets(k)
			s.TargetMean[k], s.TargetStd[k] = float32(mean), float32(std)
			if step := math.Abs(mean) * 0x1p-23; step > 1e-3*std && mean != 0 {
				return fmt.Errorf("data %s: the targets lie about %g, where float32 tells those apart that are %.3g from each other, and their deviation is %.3g: subtract a constant near their mean from them, or choose another column with --label of brood run or brood eval", s.Name, mean, step, std)
			}
			if !(s.TargetStd[k] > 0) || !finite(1/s.TargetStd[k]) {
				return fmt.Errorf("data %s: every target of the training split is %g; there is nothing to learn: choose another column with --label of brood run or brood eval", s.Name, mean)
			}
		}
	}
	for i, t := range s.targets {
		k := i % s.Outputs
		s.targets[i] = float32((float64(t) - float64(s.TargetMean[k])) / float64(s.TargetStd[k]))
		if !finite(s.targets[i]) {
			return fmt.Errorf("%s has the target %g, too far from the mean, %g", s.place(i/s.Outputs), t, s.TargetMean[k])
		}
	}
	return nil
}

// spreadOfTargets goes over the training samples twice, mean first, so that large offsets cost no digits.
func (s *Set) spreadOfTargets(output int) (mean, std float64) {
	n := float64(len(s.train))
	for _, id := range s.train {
		mean += float64(s.targets[int(id)*s.Outputs+output])
	}
	mean /= n
	for _, id := range s.train {
		d := float64(s.targets[int(id)*s.Outputs+output]) - mean
		std += float64(d * d)
	}
	return mean, math.Sqrt(std / n)
}
