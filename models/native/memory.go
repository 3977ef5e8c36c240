package native

import (
	"brood/models/data"
	"brood/models/engine"
	"brood/models/native/kernel"
)

// scratchEstimator is an op whose matrix products pack operands. gemmScratch returns the memory for a number of
// samples, forward and, with gradients, backward.
type scratchEstimator interface {
	gemmScratch(k *kernel.Kernels, samples int, gradients bool) kernel.Scratch
}

// tableSizer is an op with tables. tables returns their size in bytes.
type tableSizer interface{ tables() int64 }

// fixed returns the measured memory of a thread in addition to buffers: kernel arguments, buffer descriptors and its
// share of the plan.
func (e *Engine) fixed() int64 { return 14<<10 + int64(len(e.plan.ops))<<9 }

// EstimateMemory estimates the memory in bytes of the engine after such work: the tables of the plan, the buffers of
// the passes and the scratch memory of their kernels. It excludes the matrices in the tasks, which the caller
// allocates.
func (e *Engine) EstimateMemory(w engine.Work) (bytes int64) {
	if e.whole != nil {
		return e.wholeMemory(w)
	}
	bytes = int64(len(e.tables)) * kernel.ByteTableBytes
	for _, o := range e.plan.ops {
		if t, ok := o.(tableSizer); ok {
			bytes += t.tables()
		}
	}
	pairs := w.Candidates
	if w.Antithetic {
		pairs = (pairs + 1) / 2
	}
	group := 1
	if w.Noise.Rank > 0 {
		group, _ = e.grouping(w.Noise, pairs)
		pairs = (pairs + group - 1) / group
	}
	members, scores, own := w.Members, w.Rows*((w.Scores+maxPassSamples-1)/maxPassSamples), w.Rows
	if w.Gradients == 0 {
		members = 0
	}
	if w.Own == 0 {
		own = 0
	}
	for i, p := range e.passes {
		samples := 0
		packed := max(w.Gradients, min(w.Scores, maxPassSamples), w.Own, e.candidateSamples(w.Batch)) // bound for helpers
		for _, task := range []struct{ entries, samples int }{
			{members, w.Gradients},
			{scores, min(w.Scores, maxPassSamples)},
			{own, w.Own},
			{pairs, e.candidateSamples(w.Batch)},
		} {
			if i < task.entries {
				samples = max(samples, task.samples)
			}
		}
		if samples > 0 {
			packed = samples
		}
		bytes += e.fixed() + 4*int64(e.passFloats(samples, i < members, i < own))
		if (e.set.Augment() != data.Augment{}) {
			bytes += int64(samples * e.set.Features()) // augmented images
		}
		var keep kernel.Scratch
		for _, o := range e.plan.ops {
			if s, ok := o.(scratchEstimator); ok && packed > 0 {
				keep = keep.Max(s.gemmScratch(p.k, packed, members > 0))
				if pairs > 0 && w.Noise.Rank == 0 {
					keep = keep.Max(e.roundedScratch(o, e.candidateSamples(w.Batch), p.k))
				}
			}
		}
		if i < pairs {
			c, more := e.candidateBytes(w, group, p.k)
			bytes, keep = bytes+c, keep.Max(more)
		}
		if i < pairs || w.Sums > 0 {
			bytes += e.factorBytes(w.Noise)
		}
		if w.Sums > 0 {
			s, more := e.sumBytes(w, p.k)
			bytes, keep = bytes+s, keep.Max(more)
		}
		bytes += keep.Max(e.muonScratch(w, i)).Bytes()
	}
	return bytes + e.muonBytes(w) + sumIDs(w)
}

// candidateSamples returns the number of samples per pass of candidates.
func (e *Engine) candidateSamples(batch int) int {
	switch {
	case e.bounds.Norms:
		return batch
	case e.bf16 && e.order == kernel.Blocks: // weights are rounded and packed again for every pass
		return min(batch, 2*maxPassSamples)
	}
	return min(batch, maxPassSamples)
}

// passFloats returns the number of floats of the buffers of a pass over that many samples; 0 without samples.
func (e *Engine) passFloats(samples int, gradients, own bool) int {
	if samples == 0 {
		return 0
	}
	n := e.plan.floats(samples, gradients) + 2*wholeBlocks(samples)*e.plan.model.Positions
	if m := e.plan.model; m.Targeted() {
		n += (m.Outputs + 2) * wholeBlocks(samples) // targets, and squared errors in float64
		if m.MultiLabel() {
			n += 6 * m.Outputs
		}
	}
	if own {
		n += e.layout.Stats
	}
	sums := 0
	for _, o := range e.plan.ops {
		if o, ok := o.(*norm); ok {
			sums = max(sums, 2*o.image.channels)
		}
	}
	return n + sums*kernel.Lanes
}

// candidateBytes returns the memory of a pass for evaluating candidates, and the memory of its kernels.
func (e *Engine) candidateBytes(w engine.Work, group int, k *kernel.Kernels) (bytes int64, keep kernel.Scratch) {
	keep.Line = true
	floats, n := 3*e.layout.Params, e.candidateSamples(w.Batch)
	if w.Noise.Rank > 0 && len(e.rest(w.Noise)) == 0 {
		floats = 0
	}
	first, shared := e.plan.ops[0].(*dense)
	if w.Noise.Rank > 0 {
		first, shared = e.plan.first()
		shared = shared && w.Noise.Low(&e.layout.Tensors[first.wide])
		for at, op := range e.plan.ops {
			o, ok := op.(*dense)
			if !ok || !w.Noise.Low(&e.layout.Tensors[o.wide]) {
				continue
			}
			l := lowLayer{o: o, rank: w.Noise.Rank}
			if o.bias >= 0 {
				l.rank++
			}
			columns := l.rank
			if at == e.plan.lead {
				columns *= group
			}
			keep = keep.Max(k.GemmScratch(kernel.NN, n, o.nOut, o.nIn, o.nIn, o.nOut))
			floats += o.nIn*o.nOut + group*l.rank*(o.nIn+o.nOut+1) + n*columns
			keep = keep.Max(k.GemmScratch(kernel.NT, n, columns, o.nIn, o.nIn, o.nIn))
			keep = keep.Max(k.GemmScratch(kernel.NN, n, o.nOut, l.rank, columns, o.nOut))
		}
		if shared {
			floats += w.Batch * first.nOut
		}
		return 4 * int64(floats), keep
	}
	if !shared {
		return 4 * int64(floats), keep
	}
	floats += (w.Batch + n) * first.nOut
	if e.byteLayer(first) && w.Noise.Integer {
		stride := (first.nIn + 3) / 4 * 4
		bytes = int64((w.Batch+1)*stride + first.nOut*kernel.ByteStride(first.nIn))
		floats += 2 * first.nOut
		keep = keep.Max(k.BytesScratch(n, first.nOut, first.nIn))
	}
	return bytes + 4*int64(floats), keep
}

// roundedScratch returns the memory of a thread's kernels for a layer whose products are rounded, for evaluating
// threads and helpers.
func (e *Engine) roundedScratch(op op, n int, k *kernel.Kernels) kernel.Scratch {
	switch o := op.(type) {
	case *dense:
		if e.bf16 {
			return k.BF16Scratch(e.order, n, o.nOut, o.nIn)
		}
	case *conv:
		if e.bf16 && o.inBlocks(e.order) {
			return k.ConvBlocksScratch(o.c)
		}
	}
	return kernel.Scratch{}
}

// EstimateMemory estimates the memory in bytes of all threads after such noise sums and Muon steps.
func (v *Vector) EstimateMemory(w engine.Work) (bytes int64) {
	for i, k := range v.threads {
		keep := v.muonScratch(w, i)
		if w.Sums > 0 {
			s, more := v.sumBytes(w, k.Kernels)
			bytes, keep = bytes+s+v.factorBytes(w.Noise), keep.Max(more)
		}
		bytes += keep.Bytes()
	}
	return bytes + v.muonBytes(w) + sumIDs(w)
}

// sumIDs returns the bytes that a Vector stores per noise sum: ids, weights and, for Integer noise, whole weights.
func sumIDs(w engine.Work) int64 {
	if w.Noise.Integer {
		return 12 * int64(w.Sums)
	}
	return 8 * int64(w.Sums)
}

// leadBytes is the memory of a thread's kernels per candidate of a sum.
const leadBytes = 16

// factorBytes returns the memory of a thread for the low-rank noise factors of one tensor.
func (v *Vector) factorBytes(n engine.Noise) int64 {
	rows, cols := 0, 0
	for i := range v.layout.Tensors {
		if t := &v.layout.Tensors[i]; n.Low(t) {
			rows, cols = max(rows, t.Len/t.Cols), max(cols, t.Cols)
		}
	}
	return 4 * int64(n.Rank*(rows+cols))
}

// sumBytes returns the further memory of a thread for noise sums, and the memory of its kernels.
func (v *Vector) sumBytes(w engine.Work, k *kernel.Kernels) (bytes int64, keep kernel.Scratch) {
	keep.Line = true
	r := w.Noise.Rank
	if r == 0 {
		return leadBytes * int64(w.Sums), keep
	}
	left, right, some := 0, 0, min(w.Sums, columnsAtOnce/r)
	for i := range v.layout.Tensors {
		t := &v.layout.Tensors[i]
		if !w.Noise.Low(t) {
			bytes = leadBytes * int64(w.Sums)
			continue
		}
		rows := t.Len / t.Cols
		left, right = max(left, some*r*rows), max(right, some*r*t.Cols)
		keep = keep.Max(k.GemmScratch(kernel.TN, rows, t.Cols, some*r, rows, t.Cols))
	}
	return bytes + 4*int64(left+right), keep
}
