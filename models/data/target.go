package data

import (
	"fmt"
	"math"
)

// Targets returns the standardised targets of sample id, one per output, or the 0/1 labels of multi-label data. It
// returns nil if labels are classes or the id is invalid. The result is read-only.
func (s *Set) Targets(id int32) []float32 {
	if s.targets == nil || id < 0 || int(id) >= len(s.labels) {
		return nil
	}
	return s.targets[int(id)*s.Outputs : (int(id)+1)*s.Outputs]
}

// Restore converts a standardised model output to the original unit of the targets.
func (s *Set) Restore(output int, z float32) float64 {
	return float64(float64(z)*float64(s.TargetStd[output])) + float64(s.TargetMean[output])
}

// TargetVariance returns the variance of an output's standardised targets over the samples ids: the mean squared error
// of the best constant prediction, the reference of R2. Products are rounded before they are added (no fused
// multiply-add).
func (s *Set) TargetVariance(ids []int32, output int) float64 {
	var mean, sum float64
	same := true
	for _, id := range ids {
		mean += float64(s.Targets(id)[output])
		same = same && s.Targets(id)[output] == s.Targets(ids[0])[output]
	}
	if same { // exactly 0, not a rounding error
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
		return fmt.Errorf("data %s: %d targets for %d samples with %d outputs",
			s.Name, len(s.targets), len(s.labels), s.Outputs)
	}
	for i, v := range s.targets {
		switch {
		case !finite(v):
			return fmt.Errorf("%s has the target %v; leave it out or repair it", s.sampleName(i/s.Outputs), v)
		case s.MultiLabel && v != 0 && v != 1:
			return fmt.Errorf("%s has the label %v for class %s; where a sample may be in several classes each label is 0 or 1",
				s.sampleName(i/s.Outputs), v, s.ClassName(i%s.Outputs))
		}
	}
	return nil
}

// standardiseTargets computes (t - mean)/std of all targets. Mean and std are measured on the training samples if not
// given; it then fails for a target that is constant or too coarse in float32. Multi-label targets stay 0 and 1.
func (s *Set) standardiseTargets() error {
	if s.MultiLabel {
		return nil
	}
	if s.Outputs > 0 && s.TargetMean == nil {
		s.TargetMean, s.TargetStd = make([]float32, s.Outputs), make([]float32, s.Outputs)
		for k := range s.Outputs {
			mean, std := s.spreadOfTargets(k)
			s.TargetMean[k], s.TargetStd[k] = float32(mean), float32(std)
			if step := math.Abs(mean) * 0x1p-23; step > 1e-3*std && mean != 0 {
				return fmt.Errorf("data %s: the targets are near %g, where the spacing of float32 is %.3g, "+
					"and their deviation is %.3g: subtract a constant near their mean from them, "+
					"or choose another column with --label of brood run or brood eval", s.Name, mean, step, std)
			}
			if !(s.TargetStd[k] > 0) || !finite(1/s.TargetStd[k]) {
				return fmt.Errorf("data %s: every target of the training split is %g; there is nothing to learn: "+
					"choose another column with --label of brood run or brood eval", s.Name, mean)
			}
		}
	}
	for i, t := range s.targets {
		k := i % s.Outputs
		s.targets[i] = float32((float64(t) - float64(s.TargetMean[k])) / float64(s.TargetStd[k]))
		if !finite(s.targets[i]) {
			return fmt.Errorf("%s has the target %g, too far from the mean, %g", s.sampleName(i/s.Outputs), t, s.TargetMean[k])
		}
	}
	return nil
}

// spreadOfTargets returns the mean and standard deviation of an output's targets over the training samples. It makes
// two passes, mean first, so that large offsets lose no precision.
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
