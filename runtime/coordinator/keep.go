package coordinator

import (
	"brood/runtime/timeline"
)

// A worker keeps a snapshot of the round that a grant begins at, for as many grants as are out: a plan that cuts a grant off
// begins there, and a checkpoint is of a committed round. One that hosts everybody hands its members to nobody. Where its blocks
// are large it keeps none: then one grant is out at a time and is never cut off, checkpoints are saved between grants, and the way back
// from a block that is not finite leads to the newest checkpoint.

// KeepBytes is what a worker that hosts everybody may hold in blocks and still keep snapshots of them.
const KeepBytes = 256 << 20

// saveShare is how many times as long as the last checkpoint took passes at least until the next: they cost 3%.
const saveShare = 33

// keeps says whether the epoch in force keeps snapshots.
func (c *Coordinator) keeps() bool {
	if len(c.roster.Workers()) > 1 {
		return true
	}
	tl, err := timeline.New(c.alg, c.edits)
	if err != nil {
		return true // no edit is accepted that does not parse
	}
	var bytes int64
	for _, b := range c.alg.Blocks(tl.Values(timeline.Position{Round: c.committed, Epochs: c.progress.Epochs, Steps: c.progress.Steps}), c.cfg.Layout) {
		row := int64(b.Cols * b.Type.Size())
		if !b.Shared {
			row *= int64(len(c.roster.Members))
		}
		bytes += row
	}
	return bytes <= c.cfg.Keep
}
