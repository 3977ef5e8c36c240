package averaging

import (
	"context"
	"fmt"

	"brood/models/engine"
	"brood/optim"
)

// knobFragments is the number of parts into which engine.Cut divides the parameters.
var knobFragments = optim.Knob{
	Name:    "fragments",
	Title:   "fragments",
	Doc:     "parts of the parameters that are sent one after the other; a change drops fragments in transit",
	Min:     1,
	Max:     64,
	Default: 4,
	Integer: true,
	Scale:   optim.Log,
}

// checkFragments returns an error if a fragment would be empty, or two would be due after the same step.
func checkFragments(s optim.Shape) error {
	switch f := s.K.I("fragments"); {
	case f > s.K.I("h"):
		return fmt.Errorf("%d fragments need a cycle of as many steps, but h is %d: lower fragments or raise h",
			f, s.K.I("h"))
	case f > s.Layout.Params:
		return fmt.Errorf("%d parameters are too few for %d fragments: lower fragments", s.Layout.Params, f)
	}
	return nil
}

// fragmentRounds is the Algorithm.Cycle of cycles of h steps whose rounds end where a fragment is due.
func fragmentRounds(s optim.Shape) (rounds int) {
	for s.Phase = 0; s.Phase < uint64(s.K.I("h")); rounds++ {
		steps, _ := fragmentSteps(s)
		s.Phase += uint64(steps)
	}
	return rounds
}

// fragmentSteps returns the number of steps of the next round, and the fragment that is due after the last of them, or
// -1. Fragment p is due after step floor(h*(p+1)/fragments) of each cycle of h.
func fragmentSteps(s optim.Shape) (steps, fragment int) {
	h, fragments := s.K.I("h"), s.K.I("fragments")
	phase := int(s.Phase % streamingDiLoCoPendingUnit % uint64(h))
	for p := range fragments {
		_, at := engine.Cut(h, p, fragments)
		if at <= phase {
			continue
		}
		if steps = min(at-phase, s.K.I("slice")); steps < at-phase {
			return steps, -1
		}
		return steps, p
	}
	return 1, -1 // not reached: the last fragment is sent after step h, and phase < h
}

// fragmentOuterStep updates d.Cols columns of xbar, from lo on, along d (1 row), and mixes the result into the x of all
// hosted members, which keep the share alpha of their own. It executes the tasks before first.
func fragmentOuterStep(
	ctx context.Context, e *optim.Env, k optim.Values, lo int, d engine.Mat, alpha float32, before ...engine.Task,
) error {
	n, hi := len(e.Mine), lo+d.Cols
	x, xbar, m := e.Scratch(n, d.Cols), e.Scratch(1, d.Cols), e.Scratch(1, d.Cols)
	in, out := before, []engine.Task{}
	for _, b := range []struct {
		name string
		copy engine.Mat
	}{{optim.BlockX, x}, {optim.BlockXBar, xbar}, {optim.BlockMX, m}} {
		columns := fragmentColumns(e, b.name, lo, hi)
		in = append(in, engine.Copy{Dst: engine.All(b.copy), Src: columns})
		out = append(out, engine.Copy{Dst: columns, Src: engine.All(b.copy)})
	}
	mix := optim.Assign(x, optim.T(1, xbar))
	if alpha > 0 {
		mix = optim.Assign(x, optim.T(alpha, x), optim.T(1-alpha, xbar))
	}
	outer := optim.Nesterov(xbar, m, d, k.F("eta"), k.F("momentum"))
	in = append(in, optim.Update(1, outer...), optim.Update(n, mix))
	return e.Engine.Do(ctx, append(in, out...)...)
}

// fragmentColumns returns columns [lo, hi) of a block.
func fragmentColumns(e *optim.Env, block string, lo, hi int) engine.Span {
	s := engine.All(e.Block(block))
	s.Lo, s.Hi = lo, hi
	return s
}
