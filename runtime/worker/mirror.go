package worker

import (
	"context"
	"slices"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/collective"
	"brood/runtime/message"
)

// OpMirror names the bytes of mirrors in a report. They are counted with the evaluations, outside the algorithm's
// bytes.
const OpMirror collective.Op = "mirror"

// mirrors holds copies of the rows of another worker, whose mirror this worker is: of every committed round that a plan
// may return to. The loss of that worker then loses no row. Shared blocks need no copy.
type mirrors struct {
	at    map[uint64]state // by round; nil in an epoch without mirrors
	spare []state          // to be reused
}

// mirror sends the hosted rows of the current round to this worker's mirror, and receives those of the worker whose
// mirror it is. The call is collective over the workers of the epoch. It returns once this worker has its copies; only
// when all workers have returned are all rows of this round held twice.
func (s *epochState) mirror(ctx context.Context) error {
	from, to := s.env.Roster, s.env.Roster.Mirrors()
	if len(to.Members) == 0 {
		return nil
	}
	edges := survivorEdges(from, to)
	m, err := s.copies(len(to.Hosted(s.env.Self)))
	if err != nil {
		return err
	}
	for _, b := range s.ownBlocks() {
		if b.Record {
			src, dst := s.env.Records[b.Name], m.records[b.Name]
			err = s.env.Comm.MoveRecordsBetween(ctx, OpMirror, from, to, edges, src, dst)
		} else {
			err = s.env.Comm.MoveBetween(ctx, OpMirror, from, to, edges, s.env.Blocks[b.Name], m.blocks[b.Name])
		}
		if err != nil {
			s.mirrors.spare = append(s.mirrors.spare, m)
			return err
		}
	}
	if err := s.env.Engine.Wait(ctx); err != nil {
		s.mirrors.spare = append(s.mirrors.spare, m)
		return err
	}
	s.mirrors.at[s.round] = m
	return nil
}

// on reports whether the epoch has mirrors.
func (m *mirrors) on() bool { return m.at != nil }

// ownBlocks returns the blocks with a row for each member.
func (s *epochState) ownBlocks() []optim.Block {
	return slices.DeleteFunc(s.blocks(), func(b optim.Block) bool { return b.Shared })
}

// copies returns memory for n rows of each block that has a row for each member.
func (s *epochState) copies(n int) (m state, err error) {
	if last := len(s.mirrors.spare) - 1; last >= 0 {
		m, s.mirrors.spare = s.mirrors.spare[last], s.mirrors.spare[:last]
		return m, nil
	}
	like := state{map[string]engine.Mat{}, map[string]engine.Host{}}
	for _, b := range s.ownBlocks() {
		if b.Record {
			like.records[b.Name] = engine.Host{Rows: n, Cols: b.Cols, Type: b.Type}
		} else {
			like.blocks[b.Name] = engine.Mat{Rows: n, Cols: b.Cols}
		}
	}
	return like.allocLike(s.env.Engine)
}

// dropBefore keeps the memory of the copies of earlier rounds for later ones.
func (m *mirrors) dropBefore(committed uint64) {
	for at, c := range m.at {
		if at < committed {
			delete(m.at, at)
			m.spare = append(m.spare, c)
		}
	}
}

func (m *mirrors) free(e engine.Engine) {
	for _, c := range m.at {
		c.free(e)
	}
	for _, c := range m.spare {
		c.free(e)
	}
	*m = mirrors{}
}

// grantMirror mirrors the state after a grant and counts the bytes in d. It returns how long it waited for the other
// workers, in nanoseconds.
func (w *Worker) grantMirror(ctx context.Context, d *message.Done) (waited int64, err error) {
	comm := w.now.env.Comm
	sent, before := comm.Ledger, comm.Waited
	comm.Ledger = d.Evaluation
	err = w.now.mirror(ctx)
	waited = comm.Waited - before
	comm.Ledger, comm.Waited = sent, before
	return waited, err
}
