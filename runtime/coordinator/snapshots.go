package coordinator

import (
	"brood/runtime/timeline"
)

// A worker keeps a snapshot of the round that a grant begins at, for as many grants as are out: a plan that cuts a
// grant off begins there, and a checkpoint is of a committed round. One that hosts everybody hands its members to
// nobody. Where its blocks are large it keeps none: then one grant is out at a time and is never cut off, checkpoints
// are saved between grants, and the way back from a block that is not finite leads to the newest checkpoint.

// KeepBytes is what a worker that hosts everybody may hold in blocks and still keep snapshots of them.
const KeepBytes = 256 << 20

// saveShare is how many times as long as the last checkpoint took passes at least until the next: they cost 3%.
const saveShare = 33

// keeps says whether the epoch in force keeps snapshots.
func (c *Coordinator) keeps() bool {
	rows, shared, _ := c.weigh()
	return len(c.hosting.Workers) > 1 || rows*int64(len(c.roster.Members))+shared <= c.cfg.Keep
}

// weigh is the bytes of a member's rows, those of the shared rows, and how many blocks there are.
func (c *Coordinator) weigh() (rows, shared, blocks int64) {
	tl, err := timeline.New(c.alg, c.edits)
	if err != nil {
		return 0, 0, 0 // no edit is accepted that does not parse
	}
	for _, b := range c.alg.Blocks(tl.Values(timeline.Position{Round: c.committed, Epochs: c.progress.Epochs, Steps: c.progress.Steps}), c.cfg.Layout) {
		if n := int64(b.Cols * b.Type.Size()); b.Shared {
			shared += n
		} else {
			rows += n
		}
		blocks++
	}
	return rows, shared, blocks
}

// A row of a file has a name and a place in its head; the rest of the head and the counters of progress take less than
// the base.
const headBytes, baseBytes = 256, 1 << 16

// mostSaved bounds the file that a worker brings of a checkpoint.
func (c *Coordinator) mostSaved(w int) int64 {
	rows, shared, blocks := c.weigh()
	n := int64(len(c.hosting.Of(w)))
	return n*(rows+blocks*headBytes) + shared + blocks*headBytes + baseBytes
}
