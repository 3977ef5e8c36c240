package engine

// Work is what a run asks of its engine at most, for the memory that this takes. The zero value of a field is nothing
// of its kind.
type Work struct {
	Members   int // whose gradients are taken at once
	Gradients int // samples of their batch

	Candidates int   // evaluated at once
	Antithetic bool  // in pairs
	Batch      int   // samples that a candidate sees
	Sums       int   // noise vectors added up at once
	Noise      Noise // of candidates and sums

	Rows   int // whose parameters are evaluated at once
	Scores int // samples that each is evaluated on, with given statistics
	Own    int // the same with the batch's own statistics, and of Statistics

	Muon bool // steps of Muon
}

// Max is the work of both.
func (w Work) Max(o Work) Work {
	out := Work{Members: max(w.Members, o.Members), Gradients: max(w.Gradients, o.Gradients), Candidates: max(w.Candidates, o.Candidates),
		Antithetic: w.Antithetic && o.Antithetic, Batch: max(w.Batch, o.Batch), Sums: max(w.Sums, o.Sums), Noise: w.Noise, Rows: max(w.Rows, o.Rows), Scores: max(w.Scores, o.Scores), Own: max(w.Own, o.Own), Muon: w.Muon || o.Muon}
	switch {
	case w.Candidates == 0:
		out.Antithetic = o.Antithetic
	case o.Candidates == 0:
		out.Antithetic = w.Antithetic
	}
	if w.Candidates == 0 && w.Sums == 0 || (o.Candidates > 0 || o.Sums > 0) && (o.Noise.Rank > w.Noise.Rank || o.Noise.Integer) {
		out.Noise = o.Noise
	}
	return out
}
