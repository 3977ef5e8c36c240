package coordinator

import (
	"brood/runtime/timeline"
)

// A worker takes a snapshot of the round at which each outstanding grant begins. A plan that interrupts a grant
// restarts there, and a checkpoint is always of a committed round. A worker that hosts all members never transfers
// them. If its blocks are large, it takes no snapshots. Then one grant is outstanding at a time and is never
// interrupted, checkpoints are saved between grants, and after a block that is not finite the run returns to the newest
// checkpoint.

// KeepBytes is the default of Config.Keep: the maximum bytes of blocks at which a worker that hosts all members takes
// snapshots.
const KeepBytes = 256 << 20

// needsSnapshots reports whether workers take snapshots in the current epoch.
func (c *Coordinator) needsSnapshots() bool {
	rows, shared, _ := c.stateBytes()
	return len(c.hosting.Workers) > 1 || rows*int64(len(c.roster.Members))+shared <= c.cfg.Keep
}

// stateBytes returns the bytes of one member's rows, the bytes of the shared rows, and the number of blocks.
func (c *Coordinator) stateBytes() (rows, shared, blocks int64) {
	tl, err := timeline.New(c.alg, c.edits)
	if err != nil {
		return 0, 0, 0 // unreachable: edits are parsed before they are accepted
	}
	at := timeline.Position{Round: c.committed, Epochs: c.progress.Epochs, Steps: c.progress.Steps}
	for _, b := range c.alg.Blocks(tl.Values(at), c.cfg.Layout) {
		if n := int64(b.Cols * b.Type.Size()); b.Shared {
			shared += n
		} else {
			rows += n
		}
		blocks++
	}
	return rows, shared, blocks
}

// headBytes bounds the name and position of a row in a file's header. baseBytes bounds the rest of the header and the
// progress counters.
const headBytes, baseBytes = 256, 1 << 16

// maxCheckpointBytes returns the maximum size of the checkpoint file of a worker.
func (c *Coordinator) maxCheckpointBytes(w int) int64 {
	rows, shared, blocks := c.stateBytes()
	n := int64(len(c.hosting.Of(w)))
	return n*(rows+blocks*headBytes) + shared + blocks*headBytes + baseBytes
}
