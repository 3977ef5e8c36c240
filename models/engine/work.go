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

// Max is the work of both.
func (w Work) Max(o Work) Work {
	out := Work{Members: max(w.Members, o.Members), Gradients: max(w.Gradients, o.Gradients), Candidates: max(w.Candidates, o.Candidates),
		Antithetic: w.Antithetic && o.Antithetic, Batch: max(w.Batch, o.Batch), Noise: w.Noise, Rows: max(w.Rows, o.Rows), Scores: max(w.Scores, o.Scores), Own: max(w.Own, o.Own)}
	switch {
	case w.Candidates == 0:
		out.Antithetic, out.Noise = o.Antithetic, o.Noise
	case o.Candidates == 0:
		out.Antithetic = w.Antithetic
	case o.Noise.Rank > w.Noise.Rank || o.Noise.Integer:
		out.Noise = o.Noise
	}
	return out
}
