package engine

// Work is what a run asks of its engine at most, for the memory that this takes. The zero value of a field is nothing of its
// kind.
type Work struct {
	Members   int // whose gradients are taken at once
	Gradients int // samples of their batch

	Candidates int   // evaluated at once
	Antithetic bool  // in pairs
	Batch      int   // samples that a candidate sees
	Noise      Noise // its kind

	Rows   int // whose parameters are evaluated at once
	Scores int // samples that each is evaluated on, with given statistics
	Own    int // the same with the batch's own statistics, and of Statistics
}
