package simulate

import "math"

// Extrapolate predicts a round of a fleet of n workers from complete simulations of two smaller fleets whose workers
// host the same number of members. It fits each term of the cost of a round (computing of the slowest worker, turns
// from receiving to sending, payload and frames) to the two fleets: by a + b/n if the term differs by less than a
// factor of 1.5, as the traffic of an all-reduce does, otherwise by a power of n. The sum of the terms has the form of
// [Result.Plain] plus the headers of frames. It is scaled by the ratio of the larger simulation to its own sum.
//
// The result has no 95th percentile and no records, and ignores racks and churn.
func Extrapolate(cfg Config, small, large Result, n int) Result {
	s, l, to := float64(small.Workers), float64(large.Workers), float64(n)
	grow := func(a, b float64) float64 {
		switch {
		case a <= 0 || b <= 0:
			return b
		case b/a < 1.5 && a/b < 1.5:
			limit := (b*l - a*s) / (l - s)
			return limit + (a-limit)*s/to
		}
		return b * math.Pow(b/a, math.Log(to/l)/math.Log(l/s))
	}
	perRound := func(of func(Result) uint64) uint64 {
		each := func(r Result) float64 { return float64(of(r)) / float64(r.Rounds) }
		return uint64(grow(each(small)/s, each(large)/l) * to * float64(large.Rounds))
	}
	cost := large.Cost
	cost.Busy, cost.Turns = grow(small.Cost.Busy, cost.Busy), grow(small.Cost.Turns, cost.Turns)
	cost.Sent, cost.Line = grow(small.Cost.Sent, cost.Sent), grow(small.Cost.Line, cost.Line)
	cost.Frames = grow(small.Cost.Frames, cost.Frames)
	r := Result{
		Workers: n,
		Rounds:  large.Rounds,
		Samples: perRound(func(r Result) uint64 { return r.Samples }),
		Steps:   perRound(func(r Result) uint64 { return r.Steps }),
		Seconds: cost.seconds(cfg, true) * large.Seconds / large.Cost.seconds(cfg, true),
		Plain:   cost.seconds(cfg, false),
		Bytes:   grow(small.Bytes/s, large.Bytes/l) * to,
		Cost:    cost,
	}
	if large.Cost.Busy > 0 {
		r.Training = large.Training * (cost.Busy / large.Cost.Busy) * (large.Seconds / r.Seconds)
	}
	return r
}

// Cost has the maximum over workers of each cost of a round.
type Cost struct {
	Busy       float64 // computing, in seconds
	Turns      float64 // number of turns from receiving to sending
	Sent, Line float64 // payload in bytes: in total, and on its busiest connection
	Frames     float64 // number of frames sent
}

// seconds returns the time of a round by latency and bandwidth alone (Hockney 1994): computing, a delay for each turn,
// and bytes at the lower rate. headers adds frame headers and the processor time of frames.
func (c Cost) seconds(cfg Config, headers bool) float64 {
	var l Link
	if cfg.Link != nil && cfg.Workers > 1 {
		l = cfg.Link(0, 1)
	}
	sent, line := c.Sent, c.Line
	if headers {
		sent, line = sent*(1+cfg.Overhead)+frameBytes*c.Frames, line*(1+cfg.Overhead)+frameBytes
	}
	bytes := 0.0
	if l.Rate > 0 {
		bytes = line / l.Rate
	}
	if cfg.Up > 0 {
		bytes = max(bytes, sent/cfg.Up)
	}
	if cfg.Down > 0 && headers {
		bytes = max(bytes, sent/cfg.Down)
	}
	s := c.Busy + c.Turns*l.Delay.Seconds() + bytes
	if headers {
		s += c.Turns*cfg.Hop + 2*c.Sent*cfg.PerByte
	}
	return s
}
