package engine

// Work is the maximum size of the tasks of a run, from which engines estimate their memory. Zero means that the run has
// no such task.
type Work struct {
	Members   int // entries per Gradients task
	Gradients int // samples per batch of a Gradients task

	Candidates int   // candidates per task
	Antithetic bool  // candidates are antithetic pairs
	Batch      int   // samples per candidate
	Sums       int   // noise vectors per NoiseSum
	Noise      Noise // of candidates and sums

	Rows   int // entries per Evaluate task
	Scores int // samples per batch of an Evaluate task with given batch-norm statistics
	Own    int // samples per batch of an Evaluate task with the batch's own statistics, and of a Statistics task

	Muon bool // the run has Muon steps
}

// Max returns the field-wise maximum of w and o. The result is antithetic only if all candidates of both are; its Noise
// is that of the greater rank, or o's if that is Integer or w has neither candidates nor sums.
func (w Work) Max(o Work) Work {
	out := Work{
		Members:    max(w.Members, o.Members),
		Gradients:  max(w.Gradients, o.Gradients),
		Candidates: max(w.Candidates, o.Candidates),
		Antithetic: w.Antithetic && o.Antithetic,
		Batch:      max(w.Batch, o.Batch),
		Sums:       max(w.Sums, o.Sums),
		Noise:      w.Noise,
		Rows:       max(w.Rows, o.Rows),
		Scores:     max(w.Scores, o.Scores),
		Own:        max(w.Own, o.Own),
		Muon:       w.Muon || o.Muon,
	}
	switch {
	case w.Candidates == 0:
		out.Antithetic = o.Antithetic
	case o.Candidates == 0:
		out.Antithetic = w.Antithetic
	}
	usesNoise := o.Candidates > 0 || o.Sums > 0
	if w.Candidates == 0 && w.Sums == 0 || usesNoise && (o.Noise.Rank > w.Noise.Rank || o.Noise.Integer) {
		out.Noise = o.Noise
	}
	return out
}
