package worker

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/zeebo/blake3"

	"brood/models/engine"
	"brood/optim/collective"
	"brood/runtime/message"
)

// snapshot is a copy of all blocks, and the number of edits in the timeline at that round.
type snapshot struct {
	state
	edits int
}

// snapshot copies the state of the current round. It ignores cancellation, so that it is never partial.
func (s *epochState) snapshot(ctx context.Context) error {
	var snap snapshot
	if n := len(s.spare); n > 0 {
		snap, s.spare = s.spare[n-1], s.spare[:n-1]
	} else {
		copied, err := stateOf(s.env).allocLike(s.env.Engine)
		if err != nil {
			return fmt.Errorf("snapshot of round %d: %w", s.round, err)
		}
		snap.state = copied
	}
	snap.edits = s.time.Len()
	if err := s.env.Engine.Do(context.WithoutCancel(ctx), copyState(snap.state, stateOf(s.env))...); err != nil {
		s.spare = append(s.spare, snap)
		return err
	}
	s.snaps[s.round] = snap
	return nil
}

// restore returns to the start of a grant. It restores even if the round number has not changed, since a round may have
// been interrupted. It ignores cancellation itself.
func (s *epochState) restore(ctx context.Context, at uint64) error {
	snap, ok := s.snaps[at]
	if !ok {
		if s.round == at && !s.dirty {
			return nil // no grant from here has begun
		}
		return fmt.Errorf("no snapshot of round %d", at)
	}
	if err := s.env.Engine.Do(context.WithoutCancel(ctx), copyState(stateOf(s.env), snap.state)...); err != nil {
		return err
	}
	s.round, s.ended, s.dirty = at, false, false
	return s.time.Truncate(snap.edits)
}

// free frees all memory of the epoch.
func (s *epochState) free() {
	for _, snap := range s.snaps {
		snap.free(s.env.Engine)
	}
	s.freeSpare()
	s.mirrors.free(s.env.Engine)
	s.env.Free()
	s.snaps = nil
}

// freeSpare frees the memory of snapshots that are no longer needed.
func (s *epochState) freeSpare() {
	for _, snap := range s.spare {
		snap.free(s.env.Engine)
	}
	s.spare = nil
}

// shared reports, by name, which blocks are shared.
func (s *epochState) shared() map[string]bool {
	out := map[string]bool{message.ProgressBlock: true}
	for _, b := range s.blocks() {
		out[b.Name] = b.Shared
	}
	return out
}

// digests returns the BLAKE3 digest of every hosted row, sorted by name. bad is the first block of parameters that
// holds NaN or infinity, nil if there is none; records may hold NaN, for example as a missing fitness. It waits for all
// queued tasks.
func (s *epochState) digests(ctx context.Context) (out message.Digests, bad *message.NonFinite, err error) {
	return s.digestsOf(ctx, stateOf(s.env), s.env.Mine, s.shared())
}

// digestsOf is digests for blocks with the rows of the given members.
func (s *epochState) digestsOf(
	ctx context.Context, of state, members []engine.Member, shared map[string]bool,
) (out message.Digests, bad *message.NonFinite, err error) {
	var tasks []engine.Task
	hashes, finite := map[string][][32]byte{}, map[string][]bool{}
	for _, name := range slices.Sorted(maps.Keys(of.blocks)) {
		m := of.blocks[name]
		hashes[name] = make([][32]byte, m.Rows)
		tasks = append(tasks, engine.Digest{X: m, Hash: hashes[name]})
		if m.Cols == s.env.Layout.Params {
			finite[name] = make([]bool, m.Rows)
			tasks = append(tasks, engine.Finite{X: m, OK: finite[name]})
		}
	}
	if err := s.env.Engine.Do(ctx, tasks...); err != nil {
		return nil, nil, err
	}
	if err := s.env.Engine.Wait(ctx); err != nil {
		return nil, nil, err
	}
	var buf []byte
	for _, r := range of.rows(members, shared) {
		if r.mat.Rows == 0 {
			buf = engine.AppendRows(buf[:0], r.record, 0, 1)
			out = append(out, message.Digest{Row: r.name(), Sum: blake3.Sum256(buf)})
			continue
		}
		if ok := finite[r.block]; len(ok) > 0 {
			if !ok[0] && bad == nil {
				bad = &message.NonFinite{Block: r.block, Member: r.member, To: s.round}
			}
			finite[r.block] = ok[1:]
		}
		out = append(out, message.Digest{Row: r.name(), Sum: hashes[r.block][0]})
		hashes[r.block] = hashes[r.block][1:]
	}
	out.Sort()
	return out, bad, nil
}

// NonFiniteError reports that a block holds NaN or infinity.
type NonFiniteError struct {
	message.NonFinite
	frames []collective.FrameSums // of its rounds, in an epoch with witnesses
}

func (e *NonFiniteError) Error() string {
	if e.Member == engine.None {
		return fmt.Sprintf("block %s is not finite after rounds %d to %d", e.Block, e.From+1, e.To)
	}
	return fmt.Sprintf("block %s of member %d is not finite after rounds %d to %d", e.Block, e.Member, e.From+1, e.To)
}
