package native

// odds are the classes of one sample of a multi-label model, as classifiers of two classes each: logits 0 and z for
// each.
type odds struct {
	z, d   []float32 // classes x 2
	truth  []int32   // 1 for the classes of the sample
	losses []float32
}

func newOdds(classes int) odds {
	return odds{make([]float32, 2*classes), make([]float32, 2*classes), make([]int32, classes), make([]float32, classes)}
}

// independent writes the losses of the samples, the share of wrong classes per sample and, unless d is nil, scale times
// the gradient of each loss. Losses are means over the classes of the cross-entropy of the softmax of (0, z),
//
//	log(1 + e^z) - t*z    sigmoid(z) - t
//
// so that the arithmetic is the same as for other classifiers. A class is predicted if its probability exceeds a half,
// z > 0.
func (p *pass) independent(z, d []float32, scale float32) error {
	classes := p.plan.model.Outputs
	scale /= float32(classes)
	o := &p.odds
	for s := range p.n {
		lo, wrong := s*classes, 0
		for c := range classes {
			o.z[2*c+1], o.truth[c] = z[lo+c], int32(p.targets[lo+c])
			if (z[lo+c] > 0) != (o.truth[c] == 1) {
				wrong++
			}
		}
		gradients := o.d
		if d == nil {
			gradients = nil
		}
		if err := p.k.CrossEntropy(o.losses, gradients, 2, o.z, 2, 2, o.truth, scale); err != nil {
			return err
		}
		for c := 0; d != nil && c < classes; c++ {
			d[lo+c] = o.d[2*c+1]
		}
		p.losses[s], p.errors[s] = float32(total(o.losses)/float64(classes)), float64(wrong)/float64(classes)
	}
	return nil
}
