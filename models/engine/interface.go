package engine

import "context"

// Memory is the memory of an engine, which stores matrices. Other code accesses their elements only by Write and Read.
type Memory interface {
	// Alloc returns a zeroed matrix, which the caller must Free. The error states the requested and the free memory.
	Alloc(rows, cols int) (Mat, error)
	// Free releases the memory of m, including all views of it, once all tasks queued before have finished.
	Free(m Mat)
	// Write copies little-endian elements from p to dst, row by row, after all tasks queued before. The caller may reuse p
	// once Write returns.
	Write(ctx context.Context, dst Span, p []byte) error
	// Read waits for all tasks queued before, then copies the elements of src to p.
	Read(ctx context.Context, p []byte, src Span) error
}

// Engine executes tasks. One worker uses it, from one goroutine, except for its executor threads ([ThreadedEngine]).
type Engine interface {
	Memory
	// Do queues tasks, which run in order. It rejects a task of mismatched shapes immediately; the next call returns the
	// error of a task that fails later. See [Task] for the ownership of slices in a task.
	Do(ctx context.Context, tasks ...Task) error
	// Wait returns when all queued tasks have finished and all fields marked "out" contain their results.
	Wait(ctx context.Context) error
}

// InOrder is the Do of an engine that executes tasks one by one: it calls do for each of them until one fails or ctx
// ends.
func InOrder(ctx context.Context, tasks []Task, do func(context.Context, Task) error) error {
	for _, t := range tasks {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := do(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// Stepper is an optional interface of an Engine that executes [Steps].
type Stepper interface {
	// Steps reports whether the engine takes the steps of an optimiser itself.
	Steps(optimiser string) bool
}

// Ahead is an optional interface of an Engine that reads samples ahead.
type Ahead interface {
	// Ahead returns how many gradients later a member takes the batch that a [Gradients] announces, with that many members
	// on the engine; 0 if it needs no announcement.
	Ahead(members int) int
}

// Upload copies h (F32) into a new matrix in the memory of e, which the caller must free.
func Upload(ctx context.Context, e Memory, h Host) (Mat, error) {
	m, err := e.Alloc(h.Rows, h.Cols)
	if err != nil {
		return m, err
	}
	if err := e.Write(ctx, All(m), AppendRows(nil, h, 0, h.Rows)); err != nil {
		e.Free(m)
		return Mat{}, err
	}
	return m, nil
}

// Download returns the elements of m, after all tasks queued before have finished.
func Download(ctx context.Context, e Memory, m Mat) (Host, error) {
	h, p := NewHost(m.Rows, m.Cols, F32), make([]byte, m.Bytes())
	if err := e.Read(ctx, p, All(m)); err != nil {
		return h, err
	}
	ReadFloats(h.F, p)
	return h, nil
}
