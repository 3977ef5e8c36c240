package optim

import "brood/models/engine"

// The vocabulary of block names: one meaning each, so that a swap of algorithm can carry them over.
const (
	BlockX        = "x"        // parameters of a member, or of the one shared model
	BlockM        = "m"        // momentum of the gradient step
	BlockMX       = "mx"       // momentum of an outer step on x
	BlockM1       = "m1"       // first moment (Adam)
	BlockV        = "v"        // second moment (Adam)
	BlockT        = "t"        // steps that the moments have seen (Adam)
	BlockMuon     = "m.muon"   // momentum of matrices, first moment of vectors (Muon)
	BlockMuonV    = "v.muon"   // second moment of vectors (Muon)
	BlockMuonT    = "t.muon"   // steps that both have seen (Muon)
	BlockHidden   = "m.hidden" // momentum of all matrices but the last, first moment of all else (Muon)
	BlockHiddenV  = "v.hidden" // second moment of all else (Muon)
	BlockHiddenT  = "t.hidden" // steps that both have seen (Muon)
	BlockY        = "y"        // inner iterate of a cycle
	BlockZ        = "z"        // running average of y
	BlockXBar     = "xbar"     // the model as last agreed: the mean of x, or a centre of its own
	BlockBegun    = "begun"    // where a member began its cycle: a model of its own
	BlockW        = "w"        // weight of a member's x in the centre (push-sum)
	BlockPull     = "pull"     // stale copy of x that the next gradient is taken at
	BlockShown    = "shown"    // copy of x as last published to partners
	BlockResidual = "residual" // what rounding took from a member's messages, to be added to the next
	BlockSent     = "sent"     // mean of how far members went, on its way to an outer step
	BlockDue      = "due"      // steps until what was sent of a fragment is followed; 0 where nothing is on its way
	BlockG        = "g"        // gradient summed over the rounds of a pass
	BlockD        = "d"        // direction of the last full gradient step
	BlockS        = "s"        // standard deviations of a search distribution, in units of its sigma
	BlockPathS    = "path.s"   // where the mean of a search distribution went, in its deviations (CMA-ES: p_sigma)
	BlockPathC    = "path.c"   // the same in parameters (CMA-ES: p_c)
	BlockAxis     = "axis"     // direction in which a search distribution is wider than its deviations (CR-FM-NES: v)
	BlockAxes     = "axes"     // directions in which a mean went, of ever longer memory, in one row (LM-MA-ES: m_j)
	BlockGram     = "gram"     // their inner products with each other, as bits of float64, and their generations
	BlockSubspace = "subspace" // orthonormal basis of the last surrogates, the newest first, in one row (Guided ES: U)
	BlockVelocity = "velocity" // the last step of a search distribution's mean (ClipUp)
	BlockStep     = "step"     // factor on the step size of a search distribution
	BlockCursor   = "cursor"   // samples drawn from a data stream
	BlockPhase    = "phase"    // position within a cycle longer than a round
	BlockCycle    = "cycle"    // whole cycles done
	BlockWarm     = "warm"     // warm-up rounds done
	BlockClock    = "clock"    // steps that a member itself has taken, or meetings of its execution
	BlockStats    = "stats"    // batch-norm running statistics; never averaged
	BlockElder    = "elder"    // a parent to fall back to
	BlockFit      = "fit"      // its fitness, and whose it is
	BlockScore    = "score"    // fitness of x when it was last compared, and whether x still is what was compared
	BlockHyper    = "hyper"    // factors of a member's own on knobs
	BlockFrom     = "from"     // fitness that a member's period began with, and whether it is known
	BlockTried    = "tried"    // the last factors that were compared, when, and how well they did; the newest last
	// of a protocol's execution: a state or value of each agent. With a point and the protocol's name
	BlockAgents = "agents"
	BlockCounts = "counts" // of a protocol's execution: agents in each state. With a point and the protocol's name
	// of a protocol's execution: 0 while it runs, else 1 + the meetings at convergence, or all ones without it
	BlockEnd = "end"
)

// Params is a block of one parameter vector.
func Params(name string, shared bool, e Enter, l engine.Layout) Block {
	return Block{Name: name, Shared: shared, Cols: l.Params, Enter: e}
}

// Counter is a record of one unsigned integer.
func Counter(name string, shared bool) Block {
	return Block{Name: name, Shared: shared, Cols: 1, Type: engine.U64, Record: true}
}

// Stats is the batch-norm block of a model that has statistics; it vanishes for others.
func Stats(shared bool, l engine.Layout) Block {
	return Block{Name: BlockStats, Shared: shared, Cols: l.Stats, Enter: EnterStats}
}
