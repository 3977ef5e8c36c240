package alert

import (
	"brood/models/engine"
	"brood/runtime/event"
	"brood/runtime/view"
)

// replicas is the state of the rules for replicas, which a probe compares with the centre.
type replicas struct {
	most     float64 // greatest mean spread
	together trip
	apart    trip
	grown    int // probes in a row with the greatest spread so far

	round  uint64  // of centre and median
	centre float64 // loss of the centre
	median float64 // median loss of the members
}

// measured stores the loss of the centre or of the members in a probe.
func (s *replicas) measured(p *event.Points) {
	if p.Round != s.round {
		s.round, s.centre, s.median = p.Round, 0, 0
	}
	if p.Series == event.SeriesCentre {
		s.centre = p.Values[len(p.Values)-1]
		return
	}
	var losses []float64
	for _, x := range p.Values {
		if x-x == 0 {
			losses = append(losses, -x)
		}
	}
	s.median = view.Median(losses)
}

// next applies the rules to the spread of a probe. An algorithm that sets all replicas to their mean has spread 0 in
// all of its probes, which is no collapse.
func (s *replicas) next(p *event.Points) (out []Note) {
	x, ok := meanOf(p)
	if !ok {
		return nil
	}
	if s.grown++; x <= s.most {
		s.grown = 0
	}
	s.most = max(s.most, x)
	raised, over := s.together.next(x < together*s.most, x > distinct*s.most)
	switch {
	case raised:
		out = warn(event.AlertCollapse, "the replicas coincide: their spread is %.2g, %.2g %% of its greatest, so that they "+
			"train one model: couple them more loosely (Parle, elastic averaging: a greater rho), or train fewer", x,
			100*x/s.most)
	case over:
		out = end(event.AlertCollapse, "the spread of the replicas is %.2g again", x)
	}
	if s.round != p.Round || !(s.centre > 0 && s.median > 0) {
		return out
	}
	ratio := s.centre / s.median
	raised, over = s.apart.next(s.grown >= growing && ratio > worse, ratio < even || x < s.most/2)
	switch {
	case raised:
		return append(out, warn(event.AlertApart, "the replicas move apart: their spread has grown in %d probes to %.2g, "+
			"and the loss of the centre, %.4g, is %.2g times that of the median member: couple them more closely (Parle, "+
			"elastic averaging: a smaller rho), or export the best member", s.grown, x, s.centre, ratio)...)
	case over:
		return append(out, end(event.AlertApart, "the loss of the centre is %.4g, and of the median member %.4g", s.centre,
			s.median)...)
	}
	return out
}

// meanOf returns the mean of the finite values of members; ok is false if there are none.
func meanOf(p *event.Points) (mean float64, ok bool) {
	sum, n := 0.0, 0.0
	for i, x := range p.Values {
		if x-x == 0 && p.Members[i] != engine.None {
			sum, n = sum+x, n+1
		}
	}
	return sum / max(n, 1), n > 0
}
