package native

import "brood/models"

// regression writes the losses of the samples, their squared errors and, unless d is nil, scale times the gradient of
// each loss. With e = result - target and means over the outputs:
//
//	mse    e^2                                            2e
//	huber  e^2/2, or delta*(|e| - delta/2) beyond delta   e, or delta*sign(e)
func (p *pass) regression(z, d []float32, scale float32) {
	m := p.plan.model
	outputs := m.Outputs
	scale /= float32(outputs)
	const delta = models.HuberDelta
	for s := range p.n {
		var loss, squares float64
		for i := s * outputs; i < (s+1)*outputs; i++ {
			e := z[i] - p.targets[i]
			square := float64(float64(e) * float64(e))
			squares += square
			slope := 2 * e
			if m.Loss == models.Huber {
				slope = min(max(e, -delta), delta)
				if slope == e {
					loss += float64(square / 2)
				} else {
					loss += float64(delta * (max(float64(e), -float64(e)) - delta/2.0))
				}
			} else {
				loss += square
			}
			if d != nil {
				d[i] = scale * slope
			}
		}
		p.losses[s], p.errors[s] = float32(loss/float64(outputs)), squares/float64(outputs)
	}
}

// squares returns the sum of the squared errors of the current samples, or of their shares of wrong classes; 0 without
// targets.
func (p *pass) squares() (sum float64) {
	if p.errors == nil {
		return 0
	}
	for _, e := range p.errors[:p.n] {
		sum += e
	}
	return sum
}
