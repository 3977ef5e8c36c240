package timeline

import (
	"slices"

	"brood/models/engine"
	"brood/optim"
)

// BlocksAt lists the blocks that exist for the knobs of a round, in order of declaration.
func BlocksAt(alg *optim.Algorithm, t *Timeline, round uint64, l engine.Layout) []optim.Block {
	blocks := alg.Blocks(t.Values(Position{Round: round}), l)
	return slices.DeleteFunc(blocks, func(b optim.Block) bool { return b.Cols == 0 })
}
