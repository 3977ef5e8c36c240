package averaging

import (
	"context"
	"fmt"
	"slices"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/collective"
)

// StreamingDiLoCo is DiLoCo that sends one fragment of the model at a time, and goes on while it is on its way.
var StreamingDiLoCo = &optim.Algorithm{
	Name:  "streaming-diloco",
	Title: "Streaming DiLoCo",
	Paper: "Douillard, Donchev, Rush, Kale, Charles, Garrett, Teston, Lacey, McIlroy, Shen, Ramé, Szlam, Ranzato, Barham: Streaming DiLoCo with overlapping communication (2025), algorithm 2",
	Doc: `DiLoCo cut into fragments of the parameters, of which each is sent every h steps, one after the other, so that no round
sends more than one. What a fragment's outer step follows is of delay steps before, and replicas do not give up what they
have learned since: they mix the two.

    x^a <- AdamW(x^a, grad f(x^a); eta_in, beta1, beta2, decay)      in every step
    fragment p, after step t:           d_p = mean_a (xbar_p - x^a_p)
    the same p, after step t + delay:   xbar_p <- xbar_p - eta*Nes(mx_p, d_p);  x^a_p <- alpha*x^a_p + (1-alpha)*xbar_p

Of fragments fragments p is sent after the steps floor(h*(p+1)/fragments) of each cycle of h. What is on its way is the
block sent, and how many steps it still takes each fragment the block due: both are recorded, and a delay that is turned
holds for what is sent from then on. With overlap on a fragment leaves as the round after its step begins, and members
take the steps of that round while it is under way, as far as the delay goes: as long as delay and population stay, what
is computed has the same bits, a round later for what is sent. values e3m0 sends each replica's xbar - x in four bits a value: a sign, and a power of
two or zero, scaled by blocks of 64; sums are in float32. optimiser, momentum_in and the moments are as in diloco. A round ends where a
fragment is sent, or after slice steps; the phase block counts. The centre is xbar.
Series: loss.
Bytes: a round that sends a fragment of m values, float32: an all-reduce of them; e3m0: each replica's message to every
other worker, 4m bits and 16 a block of 64, ended at 64 bits. In a cycle float32 sends what diloco does, as long as a
fragment is longer than what is sent directly, without slices; of shorter ones everything goes to everyone.

Deviations: the source cuts between the blocks of a transformer, one after the other or in strides; here fragments are runs
of equally many parameters, so that a net of one large layer is cut as evenly. It does not say how its four bits are scaled. A round
waits at its end for what it sent, so that its state is whole: a delay longer than a round hides no more than that.
Reductions: one fragment without delay, and alpha 0, is diloco, bit for bit; alpha 1 is n independent runs.`,
	Needs: optim.Gradients,
	Knobs: slices.Concat([]optim.Knob{
		{Name: "eta", Label: "η", Title: "outer learning rate", Doc: "step size of the outer step on a fragment of the agreed model", Min: 0, Max: 100, Default: 0.7, Scale: optim.Log},
	}, optim.InnerKnobs, []optim.Knob{
		optim.KnobMu, optim.KnobH.With(32),
		{Name: "fragments", Title: "fragments", Doc: "how many parts of the parameters are sent one after the other; turning it drops what is on its way", Min: 1, Max: 64, Default: 4, Integer: true, Scale: optim.Log},
		{Name: "delay", Label: "τ", Title: "delay", Unit: "steps", Doc: "inner steps from where a fragment is sent to where its outer step is taken", Min: 0, Max: 9999, Default: 1, Integer: true},
		{Name: "alpha", Label: "α", Title: "kept share", Doc: "share of a replica's fragment that stays its own after an outer step", Min: 0, Max: 1, Default: 0.5},
		{Name: "values", Title: "values", Doc: "how a value is sent: exactly, or in four bits", Choices: []string{"float32", "e3m0"}, Max: 1},
		{Name: "overlap", Title: "overlap", Doc: "whether steps are taken while a fragment is on its way, as far as the delay goes", Choices: []string{"off", "on"}, Max: 1},
		optim.KnobSlice, optim.KnobB, optim.KnobClip, optim.KnobSplit, optim.KnobParts,
	}),
	Series: []optim.Series{optim.SeriesLoss},
	Blocks: func(k optim.Values, l engine.Layout) []optim.Block {
		return slices.Concat([]optim.Block{optim.Params(optim.BlockX, false, optim.EnterCentre, l)}, optim.Moments(k, false, l),
			[]optim.Block{optim.Params(optim.BlockXBar, true, optim.EnterCentre, l), optim.Params(optim.BlockMX, true, optim.EnterZero, l), optim.Params(optim.BlockSent, true, optim.EnterZero, l),
				{Name: optim.BlockDue, Shared: true, Cols: k.I("fragments"), Type: engine.U64, Record: true},
				optim.Counter(optim.BlockCursor, false), optim.Counter(optim.BlockPhase, true), optim.Stats(false, l)})
	},
	Check: func(s optim.Shape) error {
		switch f := s.K.I("fragments"); {
		case f > s.K.I("h"):
			return fmt.Errorf("%d fragments one after the other take as many steps, and h is %d: lower fragments or raise h", f, s.K.I("h"))
		case s.K.I("delay") >= s.K.I("h"):
			return fmt.Errorf("a fragment is sent again after %d steps, so that a delay of %d is too long: lower delay or raise h", s.K.I("h"), s.K.I("delay"))
		case f > s.Layout.Params:
			return fmt.Errorf("%d parameters are too few for %d fragments: lower fragments", s.Layout.Params, f)
		}
		return nil
	},
	Cycle: func(s optim.Shape) (rounds int) {
		for s.Phase = 0; s.Phase < uint64(s.K.I("h")); rounds++ {
			steps, _ := streamingDiLoCoSteps(s)
			s.Phase += uint64(steps)
		}
		return rounds
	},
	Bytes: func(s optim.Shape) map[collective.Op]int64 {
		sent := map[collective.Op]int64{}
		for _, p := range streamingDiLoCoSends(s) {
			lo, hi := engine.Cut(s.Layout.Params, p, s.K.I("fragments"))
			if s.K.Is("values", "e3m0") {
				sent["fragment"] += s.AllGatherBytes(8 * fourBits(hi-lo).length())
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
	steps, fragment := streamingDiLoCoSteps(shape)
	if p := streamingDiLoCoLeaves(shape); p >= 0 {
		if err := r.send(ctx, p, min(steps, k.I("delay"))); err != nil {
			return optim.Report{}, err
		}
	}
	if err := r.take(ctx, steps); err != nil {
		return optim.Report{}, err
	}
	h := uint64(k.I("h"))
	if phase[0] = (phase[0]%streamingDiLoCoLeaving%h + uint64(steps)) % h; fragment >= 0 && streamingDiLoCoOverlaps(k) {
		phase[0] += streamingDiLoCoLeaving * uint64(fragment+1)
	}
	rep := e.ReportSteps(k, int64(len(e.Roster.Members)*steps))
	rep.Points = e.LatePoints("loss", r.loss)
	if fragment < 0 || streamingDiLoCoOverlaps(k) {
		return rep, nil
	}
	return rep, r.send(ctx, fragment, 0)
}

// streamingDiLoCoRound is a round, as far as it has come.
type streamingDiLoCoRound struct {
	e      *optim.Env
	k      optim.Values
	step   optim.Step
	loss   []float32
	due    []uint64          // steps after which each fragment is followed, 0 of those that are not on their way
	phases collective.Phases // of the fragment that was sent as the round began, not taken yet
	at     []int             // steps of the round after which they are
}

// take takes steps, the phases of what is on its way, and what is due.
func (r *streamingDiLoCoRound) take(ctx context.Context, steps int) error {
	for done := 0; done < steps; {
		some := steps - done // until something else is to be done
		for _, d := range r.due {
			if d > 0 {
				some = min(some, int(d))
			}
		}
		if len(r.phases) > 0 {
			some = min(some, r.at[0]-done)
		}
		if err := optim.TakeSteps(ctx, r.e, r.step, some, optim.StepBy(r.k.Optimiser("eta_in", "momentum_in"))); err != nil {
			return err
		}
		for done += some; len(r.phases) > 0 && r.at[0] == done; r.phases, r.at = r.phases[1:], r.at[1:] {
			if err := r.phases[0](ctx); err != nil {
				return err
			}
		}
		for p, d := range r.due {
			if d == 0 {
				continue
			}
			if r.due[p] = d - uint64(some); r.due[p] == 0 {
				if err := r.follow(ctx, p); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// send has a fragment leave, which is here after so many steps of this round; 0: at once.
func (r *streamingDiLoCoRound) send(ctx context.Context, p, steps int) error {
	if r.due[p] > 0 { // a cycle that was turned shorter than the delay
		r.due[p] = 0
		if err := r.follow(ctx, p); err != nil {
			return err
		}
	}
	todo, err := streamingDiLoCoSend(ctx, r.e, r.k, p)
	if err != nil {
		return err
	}
	r.due[p] = uint64(r.k.I("delay"))
	if steps == 0 {
		if err := todo.Run(ctx); err != nil || r.due[p] > 0 {
			return err
		}
		return r.follow(ctx, p)
	}
	r.phases = todo
	for i := range todo { // spread over the steps, the last after all of them
		r.at = append(r.at, (steps*(i+1)+len(todo)-1)/len(todo))
	}
	return nil
}

func (r *streamingDiLoCoRound) follow(ctx context.Context, p int) error {
	return streamingDiLoCoFollow(ctx, r.e, r.k, p)
}

// streamingDiLoCoOverlaps says whether a fragment is to be under way while members take steps.
func streamingDiLoCoOverlaps(k optim.Values) bool { return k.Is("overlap", "on") && k.I("delay") > 0 }

// streamingDiLoCoLeaving times p+1 is part of the phase where fragment p leaves as the next round begins.
const streamingDiLoCoLeaving = 1 << 32

// streamingDiLoCoLeaves is the fragment that leaves as the next round begins, or -1.
func streamingDiLoCoLeaves(s optim.Shape) int {
	if p := int(s.Phase/streamingDiLoCoLeaving) - 1; p < s.K.I("fragments") {
		return p
	}
	return -1
}

// streamingDiLoCoSends are the fragments that the next round sends: one that leaves as it begins, and that of its last
// step, unless that leaves as the round after begins.
func streamingDiLoCoSends(s optim.Shape) (out []int) {
	if p := streamingDiLoCoLeaves(s); p >= 0 {
		out = append(out, p)
	}
	if _, p := streamingDiLoCoSteps(s); p >= 0 && !streamingDiLoCoOverlaps(s.K) {
		out = append(out, p)
	}
	return out
}

// streamingDiLoCoSteps is how many steps the next round takes, and the fragment whose step is the last of them, or -1.
func streamingDiLoCoSteps(s optim.Shape) (steps, fragment int) {
	h, fragments := s.K.I("h"), s.K.I("fragments")
	phase := int(s.Phase % streamingDiLoCoLeaving % uint64(h))
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
	return 1, -1 // not reached: the last is sent after h
}

// streamingDiLoCoSend sends how far members went in a fragment; after the last phase the mean is in its part of the
// block sent.
func streamingDiLoCoSend(ctx context.Context, e *optim.Env, k optim.Values, p int) (collective.Phases, error) {
	lo, hi := engine.Cut(e.Layout.Params, p, k.I("fragments"))
	n := len(e.Mine)
	x, xbar, d := e.Scratch(n, hi-lo), e.Scratch(1, hi-lo), e.Scratch(1, hi-lo)
	if err := e.Engine.Do(ctx, engine.Copy{Dst: engine.All(x), Src: streamingDiLoCoPart(e, optim.BlockX, lo, hi)},
		engine.Copy{Dst: engine.All(xbar), Src: streamingDiLoCoPart(e, optim.BlockXBar, lo, hi)}); err != nil {
		return nil, err
	}
	var todo collective.Phases
	var err error
	var tasks []engine.Task
	if k.Is("values", "e3m0") {
		far := engine.Update{Rows: engine.Rows(n), Prog: []engine.Lin{optim.Assign(x, optim.T(1, xbar), optim.T(-1, x))}}
		if err := e.Engine.Do(ctx, far); err != nil {
			return nil, err
		}
		todo, err = beginSparseMean(ctx, e, "fragment", fourBits(hi-lo), sparseForm{}, x, d)
	} else {
		todo, err = e.Comm.BeginReduce(ctx, "fragment", e.Roster, x, d, true, engine.Float32)
		tasks = append(tasks, engine.Update{Rows: engine.Rows(1), Prog: []engine.Lin{optim.Assign(d, optim.T(1, xbar), optim.T(-1, d))}})
	}
	tasks = append(tasks, engine.Copy{Dst: streamingDiLoCoPart(e, optim.BlockSent, lo, hi), Src: engine.All(d)})
	if err != nil {
		return nil, err
	}
	return todo.Then(func(ctx context.Context) error { return e.Engine.Do(ctx, tasks...) }), nil
}

// streamingDiLoCoFollow takes the outer step of a fragment along what was sent, and mixes it into all members.
func streamingDiLoCoFollow(ctx context.Context, e *optim.Env, k optim.Values, p int) error {
	lo, hi := engine.Cut(e.Layout.Params, p, k.I("fragments"))
	n := len(e.Mine)
	x, xbar, m, d := e.Scratch(n, hi-lo), e.Scratch(1, hi-lo), e.Scratch(1, hi-lo), e.Scratch(1, hi-lo)
	var in, out []engine.Task
	for _, b := range []struct {
		name string
		copy engine.Mat
		kept bool
	}{{optim.BlockX, x, true}, {optim.BlockXBar, xbar, true}, {optim.BlockMX, m, true}, {optim.BlockSent, d, false}} {
		in = append(in, engine.Copy{Dst: engine.All(b.copy), Src: streamingDiLoCoPart(e, b.name, lo, hi)})
		if b.kept {
			out = append(out, engine.Copy{Dst: streamingDiLoCoPart(e, b.name, lo, hi), Src: engine.All(b.copy)})
		}
	}
	mix := optim.Assign(x, optim.T(1, xbar))
	if alpha := k.F("alpha"); alpha > 0 {
		mix = optim.Assign(x, optim.T(alpha, x), optim.T(1-alpha, xbar))
	}
	in = append(in, engine.Update{Rows: engine.Rows(1), Prog: optim.Nesterov(xbar, m, d, k.F("eta"), k.F("momentum"))},
		engine.Update{Rows: engine.Rows(n), Prog: []engine.Lin{mix}})
	return e.Engine.Do(ctx, append(in, out...)...)
}

// streamingDiLoCoPart is columns [lo, hi) of a block.
func streamingDiLoCoPart(e *optim.Env, block string, lo, hi int) engine.Span {
	s := engine.All(e.Block(block))
	s.Lo, s.Hi = lo, hi
	return s
}

func (streamingDiLoCo) Centre(ctx context.Context, e *optim.Env, _ optim.Values, dst engine.Mat) error {
	return optim.CopyBlock(ctx, e, optim.BlockXBar, dst)
}
