package gpu

import "brood/models/engine"

// EstimateMemory estimates the bytes of device memory that the engine holds after the given work: the data set, and the
// buffers of the largest batch of tasks. It excludes matrices, which the caller allocates.
func (e *Engine) EstimateMemory(w engine.Work) int64 {
	total, params := int64(e.plan.total()), int64(e.layout.Params)
	bytes := e.set.Bytes() + 16*int64(len(e.layout.Tensors))
	samples := int64(w.Members) * int64(w.Gradients)
	work := samples * (2*total + int64(e.plan.widest()))
	pairs := int64(w.Candidates)
	if w.Antithetic {
		pairs = (pairs + 1) / 2
	}
	work = max(work, bounded(pairs, 3*params+3*int64(w.Batch)*total),
		bounded(int64(w.Rows), int64(max(w.Scores, w.Own))*total))
	if w.Muon {
		matrix, square := e.layout.MuonFloats()
		bytes += 8 * int64(matrix+square)
	}
	return bytes + 4*work
}

// Device returns the device's name and its free bytes. If the driver does not report memory in use, memory of other
// processes counts as free.
func (e *Engine) Device() (name string, free int64) {
	info := e.dev.Info()
	others := max(0, e.memory.sense().Taken-e.memory.held.Load())
	return info.Name, max(0, info.Memory-e.used-others)
}

// bounded returns the floats of this many entries, or of as many as are processed at once.
func bounded(entries, per int64) int64 { return min(entries*per, max(per, atOnce)) }
