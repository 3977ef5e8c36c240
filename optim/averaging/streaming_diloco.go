package averaging

import (
	"context"
	"fmt"
	"slices"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/collective"
)

// StreamingDiLoCo is DiLoCo that exchanges one fragment of the model at a time and trains on during the transfer.
var StreamingDiLoCo = &optim.Algorithm{
	Name:  "streaming-diloco",
	Title: "Streaming DiLoCo",
	Paper: "Douillard, Donchev, Rush, Kale, Charles, Garrett, Teston, Lacey, McIlroy, Shen, Ramé, Szlam, Ranzato, " +
		"Barham: Streaming DiLoCo with overlapping communication (2025), algorithm 2",
	Doc: `DiLoCo on fragments of the parameters. Each fragment is sent every h steps, one after the other, so that no round
sends more than one. The outer step of a fragment is taken delay steps after it was sent. A replica then mixes the new
agreed fragment with its own, so that it does not lose what it learned in between.

    x^a <- AdamW(x^a, grad f(x^a); eta_in, beta1, beta2, decay)      in every step
    fragment p, after step t:           d_p = mean_a (xbar_p - x^a_p)
    the same p, after step t + delay:   xbar_p <- xbar_p - eta*Nes(mx_p, d_p);  x^a_p <- alpha*x^a_p + (1-alpha)*xbar_p

Fragment p is sent after step floor(h*(p+1)/fragments) of each cycle of h. The block sent contains the
means d_p in transit, the block due the steps until the outer step of each fragment. Both belong to the state of the
run. A change of delay applies to fragments sent from then on. With overlap on a fragment is sent at the start of the
round after its step, and members take up to delay steps of that round during the transfer. As long as delay and
population stay the same, overlap does not change the bits of the model; a fragment is sent one round later. values e3m0
sends each replica's xbar - x in four bits a value: a sign, and a power of two or zero, scaled by blocks of 64; sums are
in float32. optimiser, momentum_in and the moments are as in diloco. A round ends where a fragment is sent, or after
slice steps; the phase block counts the steps. The centre is xbar.
Series: loss.
Bytes: a round that sends a fragment of m values, float32: an all-reduce of m values; e3m0: each replica's message to
every other worker, 4m bits and 16 bits a block of 64, padded to a multiple of 64 bits. Per cycle float32 sends the
bytes of diloco, unless a fragment is so short that an all-reduce sends it directly, without slices: then every worker
sends it to every other.

Deviations: the source cuts between the blocks of a transformer, consecutively or in strides; here fragments are runs of
equally many parameters, so that a net of one large layer is cut evenly too. The source does not specify how its four
bits are scaled. A round waits at its end for the fragment it sent, so that its state is complete: overlap hides at most
one round of transfer, however long the delay.
Reductions: one fragment with delay 0 and alpha 0 is diloco, bit for bit; alpha 1 is n independent runs.`,
	Needs: optim.Gradients,
	Knobs: slices.Concat([]optim.Knob{optim.KnobOuterEta}, optim.InnerKnobs, []optim.Knob{
		optim.KnobMu, optim.KnobH.With(32), knobFragments,
		{
			Name:    "delay",
			Label:   "τ",
			Title:   "delay",
			Unit:    "steps",
			Doc:     "inner steps between sending a fragment and its outer step",
			Min:     0,
			Max:     9999,
			Default: 1,
			Integer: true,
		},
		{
			Name:    "alpha",
			Label:   "α",
			Title:   "kept share",
			Doc:     "weight of a replica's own fragment in the mix after an outer step; the agreed one has weight 1-alpha",
			Min:     0,
			Max:     1,
			Default: 0.5,
		},
		{
			Name:    "values",
			Title:   "values",
			Doc:     "encoding of a sent value: exact, or four bits",
			Choices: []string{"float32", "e3m0"},
		},
		{
			Name:    "overlap",
			Title:   "overlap",
			Doc:     "whether members take steps during the transfer of a fragment, at most delay steps",
			Choices: []string{"off", "on"},
		},
		optim.KnobSlice,
	}, optim.InnerStream),
	Series: []optim.Series{optim.SeriesLoss},
	Blocks: func(k optim.Values, l engine.Layout) []optim.Block {
		return optim.StepBlocks(k, l, optim.Params(optim.BlockX, false, optim.EnterCentre, l),
			optim.Params(optim.BlockXBar, true, optim.EnterCentre, l),
			optim.Params(optim.BlockMX, true, optim.EnterZero, l),
			optim.Params(optim.BlockSent, true, optim.EnterZero, l),
			optim.Block{Name: optim.BlockDue, Shared: true, Cols: k.I("fragments"), Type: engine.U64, Record: true},
			optim.Counter(optim.BlockCursor, false),
			optim.Counter(optim.BlockPhase, true),
			optim.Stats(false, l))
	},
	Check: func(s optim.Shape) error {
		if s.K.I("delay") >= s.K.I("h") {
			return fmt.Errorf("each fragment is sent every %d steps, so a delay of %d is too long: lower delay or raise h",
				s.K.I("h"), s.K.I("delay"))
		}
		return checkFragments(s)
	},
	Cycle: fragmentRounds,
	Bytes: func(s optim.Shape) map[collective.Op]int64 {
		sent := map[collective.Op]int64{}
		for _, p := range streamingDiLoCoSends(s) {
			lo, hi := engine.Cut(s.Layout.Params, p, s.K.I("fragments"))
			if s.K.Is("values", "e3m0") {
				sent["fragment"] += s.AllGatherBytes(8 * fourBits(hi-lo).messageWords())
			} else {
				sent["fragment"] += s.AllReduceBytes(s.Roster, hi-lo)
			}
		}
		return sent
	},
	Program: streamingDiLoCo{},
}

type streamingDiLoCo struct{}

func (streamingDiLoCo) Round(ctx context.Context, e *optim.Env, k optim.Values, _ uint64) (optim.Report, error) {
	r := &streamingDiLoCoRound{e: e, k: k, due: e.Record(optim.BlockDue).U, loss: make([]float32, len(e.Mine))}
	n, shape, phase := len(e.Mine), e.Shape(k), e.Record(optim.BlockPhase).U
	r.step = e.GradientStep(k, e.Block(optim.BlockX), engine.Rows(n), e.CohortScratch(n), r.loss)
	steps, fragment := fragmentSteps(shape)
	if p := streamingDiLoCoPending(shape); p >= 0 {
		if err := r.send(ctx, p, min(steps, k.I("delay"))); err != nil {
			return optim.Report{}, err
		}
	}
	if err := r.takeSteps(ctx, steps); err != nil {
		return optim.Report{}, err
	}
	h := uint64(k.I("h"))
	phase[0] = (phase[0]%streamingDiLoCoPendingUnit%h + uint64(steps)) % h
	if fragment >= 0 && streamingDiLoCoOverlaps(k) {
		phase[0] += streamingDiLoCoPendingUnit * uint64(fragment+1)
	}
	rep := e.ReportSteps(k, int64(len(e.Roster.Members)*steps))
	rep.Points = e.LatePoints("loss", r.loss)
	if fragment < 0 || streamingDiLoCoOverlaps(k) {
		return rep, nil
	}
	return rep, r.send(ctx, fragment, 0)
}

// streamingDiLoCoRound is the state of a round in progress.
type streamingDiLoCoRound struct {
	e       *optim.Env
	k       optim.Values
	step    optim.Step
	loss    []float32
	due     []uint64          // the block due: steps until the outer step of each fragment; 0: not in transit
	phases  collective.Phases // remaining phases of the fragment that was sent at the start of the round
	phaseAt []int             // for each of phases, the number of steps of the round after which it runs
}

// takeSteps takes inner steps. Between them it runs phases and outer steps when they are due.
func (r *streamingDiLoCoRound) takeSteps(ctx context.Context, steps int) error {
	inner := optim.By(r.k.Optimiser("eta_in", "momentum_in"))
	for done := 0; done < steps; {
		run := steps - done // steps until the next phase or outer step
		for _, d := range r.due {
			if d > 0 {
				run = min(run, int(d))
			}
		}
		if len(r.phases) > 0 {
			run = min(run, r.phaseAt[0]-done)
		}
		if err := optim.OptimiserSteps(ctx, r.e, r.step, run, inner); err != nil {
			return err
		}
		done += run
		for len(r.phases) > 0 && r.phaseAt[0] == done {
			if err := r.phases[0](ctx); err != nil {
				return err
			}
			r.phases, r.phaseAt = r.phases[1:], r.phaseAt[1:]
		}
		for p, d := range r.due {
			if d == 0 {
				continue
			}
			if r.due[p] = d - uint64(run); r.due[p] == 0 {
				if err := r.outerStep(ctx, p); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// send begins the exchange of fragment p. If steps is 0, it also completes it, and takes the outer step if the delay is
// 0. Otherwise takeSteps runs the phases of the exchange, the last one after the given number of steps of this round.
func (r *streamingDiLoCoRound) send(ctx context.Context, p, steps int) error {
	if r.due[p] > 0 { // still in transit: h was lowered below the remaining delay
		r.due[p] = 0
		if err := r.outerStep(ctx, p); err != nil {
			return err
		}
	}
	phases, err := streamingDiLoCoBeginSend(ctx, r.e, r.k, p)
	if err != nil {
		return err
	}
	r.due[p] = uint64(r.k.I("delay"))
	if steps == 0 {
		if err := phases.Run(ctx); err != nil || r.due[p] > 0 {
			return err
		}
		return r.outerStep(ctx, p)
	}
	r.phases = phases
	for i := range phases { // spread evenly; the last one runs after all steps
		r.phaseAt = append(r.phaseAt, (steps*(i+1)+len(phases)-1)/len(phases))
	}
	return nil
}

func (r *streamingDiLoCoRound) outerStep(ctx context.Context, p int) error {
	return streamingDiLoCoOuterStep(ctx, r.e, r.k, p)
}

// streamingDiLoCoOverlaps reports whether members take steps during the transfer of a fragment.
func streamingDiLoCoOverlaps(k optim.Values) bool { return k.Is("overlap", "on") && k.I("delay") > 0 }

// streamingDiLoCoPendingUnit encodes a pending fragment in the phase block. The phase is the position in the cycle,
// plus streamingDiLoCoPendingUnit*(p+1) if fragment p is to be sent at the start of the next round.
const streamingDiLoCoPendingUnit = 1 << 32

// streamingDiLoCoPending returns the fragment to send at the start of the next round. It returns -1 if there is none,
// or if the knob fragments was lowered and it no longer exists.
func streamingDiLoCoPending(s optim.Shape) int {
	if p := int(s.Phase/streamingDiLoCoPendingUnit) - 1; p < s.K.I("fragments") {
		return p
	}
	return -1
}

// streamingDiLoCoSends returns the fragments that the next round sends: the pending one at its start and, without
// overlap, the fragment of its last step at its end.
func streamingDiLoCoSends(s optim.Shape) (out []int) {
	if p := streamingDiLoCoPending(s); p >= 0 {
		out = append(out, p)
	}
	if _, p := fragmentSteps(s); p >= 0 && !streamingDiLoCoOverlaps(s.K) {
		out = append(out, p)
	}
	return out
}

// streamingDiLoCoBeginSend begins the exchange of fragment p. The last phase writes the mean of the members' xbar - x
// to the columns of the fragment in the block sent.
func streamingDiLoCoBeginSend(
	ctx context.Context, e *optim.Env, k optim.Values, p int,
) (collective.Phases, error) {
	lo, hi := engine.Cut(e.Layout.Params, p, k.I("fragments"))
	n := len(e.Mine)
	x, xbar, d := e.Scratch(n, hi-lo), e.Scratch(1, hi-lo), e.Scratch(1, hi-lo)
	if err := e.Engine.Do(ctx, engine.Copy{Dst: engine.All(x), Src: fragmentColumns(e, optim.BlockX, lo, hi)},
		engine.Copy{Dst: engine.All(xbar), Src: fragmentColumns(e, optim.BlockXBar, lo, hi)}); err != nil {
		return nil, err
	}
	var phases collective.Phases
	var err error
	var tasks []engine.Task // after the exchange
	if k.Is("values", "e3m0") {
		change := optim.Assign(x, optim.T(1, xbar), optim.T(-1, x))
		if err := e.Engine.Do(ctx, optim.Update(n, change)); err != nil {
			return nil, err
		}
		phases, err = beginSparseMean(ctx, e, "fragment", fourBits(hi-lo), sparseTransform{}, x, d)
	} else {
		phases, err = e.Comm.BeginReduce(ctx, "fragment", e.Roster, x, d, true, engine.Float32)
		change := optim.Assign(d, optim.T(1, xbar), optim.T(-1, d))
		tasks = append(tasks, optim.Update(1, change))
	}
	tasks = append(tasks, engine.Copy{Dst: fragmentColumns(e, optim.BlockSent, lo, hi), Src: engine.All(d)})
	if err != nil {
		return nil, err
	}
	return phases.Then(func(ctx context.Context) error { return e.Engine.Do(ctx, tasks...) }), nil
}

// streamingDiLoCoOuterStep updates fragment p of xbar along the mean in the block sent, and mixes the result into the x
// of all hosted members.
func streamingDiLoCoOuterStep(ctx context.Context, e *optim.Env, k optim.Values, p int) error {
	lo, hi := engine.Cut(e.Layout.Params, p, k.I("fragments"))
	d := e.Scratch(1, hi-lo)
	sent := engine.Copy{Dst: engine.All(d), Src: fragmentColumns(e, optim.BlockSent, lo, hi)}
	return fragmentOuterStep(ctx, e, k, lo, d, k.F("alpha"), sent)
}

func (streamingDiLoCo) Centre(ctx context.Context, e *optim.Env, _ optim.Values, dst engine.Mat) error {
	return optim.CopyBlock(ctx, e, optim.BlockXBar, dst)
}
