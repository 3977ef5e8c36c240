package gpu

import "brood/models/engine"

// Room predicts the bytes of device memory that the engine holds once it has done some work: the data set, and the
// buffers of the largest batch of tasks. Blocks that tasks name are the caller's.
func (e *Engine) Room(w engine.Work) int64 {
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

// Device is the device's name, and the bytes that are free there, as far as is known: what others hold is not, where
// the driver tells of it.
func (e *Engine) Device() (name string, free int64) {
	info := e.dev.Info()
	others := max(0, e.memory.sense().Taken-e.memory.held.Load())
	return info.Name, max(0, info.Memory-e.used-others)
}

// bounded is the floats of so many entries, or of as many as go through at once.
func bounded(entries, per int64) int64 { return min(entries*per, max(per, atOnce)) }
