package optim

import "brood/models/engine"

// The names of blocks. Each has one meaning, so that a swap of algorithm can keep the blocks that both algorithms have.
const (
	BlockX        = "x"        // parameters of a member, or of the one shared model
	BlockM        = "m"        // momentum of the gradient step
	BlockMX       = "mx"       // momentum of an outer step on x
	BlockM1       = "m1"       // first moment (Adam)
	BlockV        = "v"        // second moment (Adam)
	BlockT        = "t"        // steps that have updated the moments (Adam)
	BlockMuon     = "m.muon"   // momentum of matrices, first moment of vectors (Muon)
	BlockMuonV    = "v.muon"   // second moment of vectors (Muon)
	BlockMuonT    = "t.muon"   // steps that have updated both (Muon)
	BlockHidden   = "m.hidden" // momentum of all matrices but the last, first moment of the other parameters (Muon)
	BlockHiddenV  = "v.hidden" // second moment of the other parameters (Muon)
	BlockHiddenT  = "t.hidden" // steps that have updated both (Muon)
	BlockState    = "state"    // state of the optimiser that a program brings, as bytes; zeros before its first step
	BlockY        = "y"        // inner iterate of a cycle
	BlockZ        = "z"        // running average of y
	BlockXBar     = "xbar"     // the shared model: the last mean of x, or a separate centre
	BlockBegun    = "begun"    // the model at the start of a cycle, per member
	BlockW        = "w"        // weight of a member's x in the centre (push-sum)
	BlockPull     = "pull"     // stale copy of x at which the next gradient is computed
	BlockShown    = "shown"    // copy of x as last published to partners
	BlockResidual = "residual" // rounding error of a member's messages, added to the next message (error feedback)
	BlockSent     = "sent"     // mean displacement of the members, in transit to an outer step
	BlockDue      = "due"      // steps until a fragment in transit is applied; 0 if none is
	BlockSince    = "since"    // steps of a member since it received each fragment
	BlockControl  = "control"  // mean gradient of a member in its last cycle (SCAFFOLD: c_i)
	BlockCBar     = "cbar"     // mean of the members' control variates (SCAFFOLD: c)
	BlockGSum     = "gsum"     // gradients of a member, summed over its steps in the current cycle
	BlockG        = "g"        // gradient summed over the rounds of a pass
	BlockD        = "d"        // direction of the last full gradient step
	BlockS        = "s"        // standard deviations of a search distribution, in units of its sigma
	BlockPathS    = "path.s"   // evolution path in units of the deviations (CMA-ES: p_sigma)
	BlockPathC    = "path.c"   // evolution path in parameters (CMA-ES: p_c)
	BlockAxis     = "axis"     // direction in which the search distribution is wider than its deviations (CR-FM-NES: v)
	// paths of the mean over increasingly long time scales, concatenated in one row (LM-MA-ES: m_j)
	BlockAxes = "axes"
	BlockGram = "gram" // inner products of the axes with each other, as bits of float64, and their generations
	// orthonormal basis of the last surrogate gradients, newest first, in one row (Guided ES: U)
	BlockSubspace = "subspace"
	// covariance of a search distribution, its eigenvectors and their deviations, as bits of float64 (CMA-ES)
	BlockCovariance = "covariance"
	BlockResults    = "results"  // results of a member's candidates in the current generation
	BlockStart      = "start"    // where a search began
	BlockBest       = "best"     // the best candidate so far
	BlockRange      = "range"    // fitness of the best candidate, and the range of recent results
	BlockVelocity   = "velocity" // last step of the mean of a search distribution (ClipUp)
	BlockStep       = "step"     // factor on the step size of a search distribution
	BlockCursor     = "cursor"   // samples drawn from a data stream
	BlockPhase      = "phase"    // position within a cycle longer than a round
	BlockCycle      = "cycle"    // completed cycles
	BlockWarm       = "warm"     // completed warm-up rounds
	BlockClock      = "clock"    // steps of a member, or interactions of its protocol execution
	BlockStats      = "stats"    // batch-norm running statistics; never averaged
	BlockElder      = "elder"    // parent to which a member falls back
	// fitness of elder; and 0: none, 1: of the member itself, 2: of the slot's previous member
	BlockFit   = "fit"
	BlockScore = "score" // fitness of x at the last comparison, and whether x has not changed since
	BlockHyper = "hyper" // per-member factors on knobs
	BlockFrom  = "from"  // fitness of a member at the start of its period, and whether it is known
	BlockTried = "tried" // last compared factors with round and result, newest last
	// Blocks of a protocol's execution. The names of the first two continue with the protocol's name, after a point.
	BlockAgents = "agents" // state or value of each agent
	BlockCounts = "counts" // number of agents in each state
	BlockEnd    = "end"    // 0 while it runs, else 1 + interactions at convergence, or all ones if it did not converge
)

// Params declares a block with a parameter vector per row.
func Params(name string, shared bool, e Enter, l engine.Layout) Block {
	return Block{Name: name, Shared: shared, Cols: l.Params, Enter: e}
}

// Counter declares a record with one unsigned integer per row.
func Counter(name string, shared bool) Block {
	return Block{Name: name, Shared: shared, Cols: 1, Type: engine.U64, Record: true}
}

// Stats declares the block of batch-norm statistics. It does not exist for models without statistics.
func Stats(shared bool, l engine.Layout) Block {
	return Block{Name: BlockStats, Shared: shared, Cols: l.Stats, Enter: EnterStats}
}
