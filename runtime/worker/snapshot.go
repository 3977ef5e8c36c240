package worker

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/zeebo/blake3"

	"brood/models/engine"
	"brood/optim"
	"brood/runtime/message"
)

// snapshot is a copy of all blocks, with the timeline's length that goes with it.
type snapshot struct {
	blocks map[string]engine.Mat
	edits  int
}

// snapshot keeps the state at the present round until a commit beyond it is known.
func (s *installed) snapshot() {
	var snap snapshot
	if n := len(s.spare); n > 0 {
		snap, s.spare = s.spare[n-1], s.spare[:n-1]
	} else {
		snap.blocks = map[string]engine.Mat{}
	}
	for name, m := range s.env.Blocks {
		d, ok := snap.blocks[name]
		if !ok {
			snap.blocks[name] = m.Clone()
			continue
		}
		copy(d.F, m.F)
		copy(d.U, m.U)
	}
	snap.edits = s.time.Len()
	s.snaps[s.round] = snap
}

// restore goes back to the start of a grant: always, whether or not the round number moved, since a round may have been
// cut off half-way.
func (s *installed) restore(at uint64) error {
	snap, ok := s.snaps[at]
	if !ok {
		if s.round == at && !s.dirty {
			return nil // no grant from here has begun
		}
		return fmt.Errorf("no snapshot of round %d", at)
	}
	for name, m := range snap.blocks {
		copy(s.env.Blocks[name].F, m.F)
		copy(s.env.Blocks[name].U, m.U)
	}
	s.round, s.ended, s.dirty = at, false, false
	return s.time.Truncate(snap.edits)
}

// rowName names a row in digests and checkpoints.
func rowName(block string, m engine.Member) string {
	if m == engine.None {
		return block + "/shared"
	}
	return fmt.Sprintf("%s/%d", block, m)
}

// eachRow visits all rows of blocks in a fixed order.
func eachRow(env *optim.Env, blocks map[string]engine.Mat, shared map[string]bool, f func(name string, m engine.Member, row engine.Mat)) {
	for _, b := range slices.Sorted(maps.Keys(blocks)) {
		mat := blocks[b]
		if shared[b] {
			f(rowName(b, engine.None), engine.None, mat)
			continue
		}
		for i, m := range env.Mine {
			f(rowName(b, m), m, mat.Sub(engine.Row(i), 1))
		}
	}
}

func (s *installed) shared() map[string]bool {
	out := map[string]bool{ProgressBlock: true}
	for _, b := range s.blocks() {
		out[b.Name] = b.Shared
	}
	return out
}

// digests is BLAKE3 of every hosted row.
func (s *installed) digests() map[string][32]byte {
	out, buf := map[string][32]byte{}, []byte(nil)
	eachRow(s.env, s.env.Blocks, s.shared(), func(name string, _ engine.Member, row engine.Mat) {
		buf = optim.AppendRow(buf[:0], row, 0)
		out[name] = blake3.Sum256(buf)
	})
	return out
}

// Root is the hash of a state: BLAKE3 over the sorted digests of all rows of all blocks.
func Root(digests map[string][32]byte) string {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(digests)) {
		d := digests[name]
		b.WriteString(name)
		b.WriteByte(0)
		b.Write(d[:])
	}
	return fmt.Sprintf("blake3:%x", blake3.Sum256(b.Bytes()))
}

// NonFiniteError says that a block holds NaN or infinity.
type NonFiniteError struct{ message.NonFinite }

func (e *NonFiniteError) Error() string {
	if e.Member == engine.None {
		return fmt.Sprintf("block %s is not finite after rounds %d to %d", e.Block, e.From+1, e.To)
	}
	return fmt.Sprintf("block %s of member %d is not finite after rounds %d to %d", e.Block, e.Member, e.From+1, e.To)
}

// finite refuses a state with NaN or infinity in a parameter block; records such as a missing fitness may be NaN.
func (s *installed) finite(from uint64) (err error) {
	eachRow(s.env, s.env.Blocks, s.shared(), func(name string, m engine.Member, row engine.Mat) {
		if err == nil && row.Cols == s.env.Layout.Params && row.F != nil && !optim.Finite(row.F) {
			block, _, _ := bytes.Cut([]byte(name), []byte("/"))
			err = &NonFiniteError{message.NonFinite{Block: string(block), Member: m, From: from, To: s.round}}
		}
	})
	return err
}
