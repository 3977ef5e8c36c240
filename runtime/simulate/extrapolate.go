package simulate

import "math"

// Extrapolate predicts a round of a fleet of n workers from whole simulations of two smaller fleets whose workers host
// as many members. Each term of the cost of a round (the computing of the slowest worker, its turns from receiving to
// sending, its payload and its frames) is fitted to the two fleets: by a + b/n if it differs by less than half, as what
// an all-reduce sends, else by a power of n. The sum of the terms, in the form of [Result.Plain] with the headers of
// frames added, is corrected by the factor by which the larger simulation differs from its own sum.
//
// It has no 95th percentile and no records; racks and churn are not part of the form.
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

// Cost is what a round costs the worker that does most of each kind.
type Cost struct {
	Busy       float64 // seconds of computing
	Turns      float64 // from receiving to sending
	Sent, Line float64 // bytes of payload: in all, and on its busiest connection
	Frames     float64 // sent
}

// seconds is the time of a round by latency and bandwidth alone (Hockney 1994): computing, a delay for each turn, and
// bytes over the lower rate. headers adds what payload does not: headers, and the processor's time for frames.
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
