package engine

import (
	"fmt"

	"brood/models/noise"
)

// ArgumentError reports an argument of a task that does not fit the model or the data.
type ArgumentError struct {
	Task string // e.g. "gradients"
	What string
}

func (e *ArgumentError) Error() string { return e.Task + ": " + e.What }

// DeviceError is a fatal error of an engine's device. Every later call of the engine returns it too.
type DeviceError struct {
	Device string // name for the user, e.g. "gpu:1 (NVIDIA H100)"
	Op     string // failed operation, e.g. "launch gemm"
	Err    error
}

func (e *DeviceError) Error() string { return e.Device + ": " + e.Op + ": " + e.Err.Error() }

func (e *DeviceError) Unwrap() error { return e.Err }

// Bounds checks the arguments of tasks for one model and one data set. The check methods return an *ArgumentError.
type Bounds struct {
	Layout  *Layout
	Samples int  // number of samples; ids are below it
	Norms   bool // the model has batch-norm
	Drops   bool // the model has dropout with a rate above 0
	Changes bool // the data set is augmented
}

// check records the first invalid argument of a task.
type check struct {
	b    *Bounds
	task string
	err  error
}

func (c *check) want(ok bool, format string, args ...any) {
	if !ok && c.err == nil {
		c.err = &ArgumentError{c.task, fmt.Sprintf(format, args...)}
	}
}

func (c *check) mat(name string, m Mat, rows, cols int) {
	c.want(m.Rows >= rows && m.Cols == cols,
		"%s is %dx%d, want at least %d rows of %d", name, m.Rows, m.Cols, rows, cols)
	c.want(m.Rows*m.Cols == 0 || m.buf != nil && m.at+m.Rows*m.Cols <= m.buf.Len(),
		"%s says %dx%d and has no such memory", name, m.Rows, m.Cols)
}

func (c *check) rows(name string, m Mat, rows []Row) {
	for _, r := range rows {
		c.want(r >= 0 && int(r) < m.Rows, "row %d of %s, which has %d rows", r, name, m.Rows)
	}
}

// DrawnAt returns the address at which batch i was drawn; the zero Key if its samples are not augmented.
func DrawnAt(drawn []noise.Key, i int) noise.Key {
	if drawn == nil {
		return noise.Key{}
	}
	return drawn[i]
}

// batches checks the sizes and sample ids of batches. least is the minimum number of samples per batch.
func (c *check) batches(b [][]int32, least int) {
	for i, ids := range b {
		c.want(len(ids) >= least, "batch %d has %d samples, want at least %d", i, len(ids), least)
		for _, id := range ids {
			if id < 0 || int(id) >= c.b.Samples {
				c.want(false, "batch %d names sample %d, ids are below %d", i, id, c.b.Samples)
				return
			}
		}
	}
}

// minBatch returns the minimum samples of a batch from which batch-norm statistics are computed: 2 if the model has
// batch-norm, since a single value has no variance, else 1.
func (b *Bounds) minBatch() int {
	if b.Norms {
		return 2
	}
	return 1
}

// Gradients checks the task and sets the default of StatRows.
func (b *Bounds) Gradients(t *Gradients) error {
	c := check{b: b, task: "gradients"}
	n := len(t.Rows)
	c.want(!b.Layout.Whole, "a model of whole numbers has none")
	c.mat("X", t.X, 0, b.Layout.Params)
	c.rows("X", t.X, t.Rows)
	c.mat("G", t.G, n, b.Layout.Params)
	c.want(len(t.Batches) == n, "%d batches for %d rows", len(t.Batches), n)
	c.want(len(t.Loss) == n, "room for %d losses, want %d", len(t.Loss), n)
	c.batches(t.Batches, b.minBatch())
	c.want(!b.Drops && !b.Changes || len(t.Masks) == n, "%d dropout masks for %d rows", len(t.Masks), n)
	c.want(t.Next == nil || len(t.Next) == n && len(t.StatRows) == n,
		"%d batches are announced for %d rows of Stats, want %d of each", len(t.Next), len(t.StatRows), n)
	if b.Norms {
		if t.StatRows == nil {
			t.StatRows = t.Rows
		}
		c.mat("Stats", t.Stats, 0, b.Layout.Stats)
		c.want(len(t.StatRows) == n, "%d rows of Stats for %d rows of X", len(t.StatRows), n)
		c.rows("Stats", t.Stats, t.StatRows)
		c.distinct("StatRows", t.StatRows)
	}
	return c.err
}

// distinct checks that no row is listed twice.
func (c *check) distinct(name string, rows []Row) {
	seen := make(map[Row]bool, len(rows))
	for _, r := range rows {
		c.want(!seen[r], "row %d of %s twice; every entry must update a different row", r, name)
		seen[r] = true
	}
}

// Steps checks the task and sets the default of XRows.
func (b *Bounds) Steps(t *Steps) error {
	c := check{b: b, task: "steps"}
	n := len(t.Rows)
	if t.XRows == nil {
		t.XRows = t.Rows
	}
	c.want(!b.Layout.Whole, "a model of whole numbers has no gradients")
	for _, m := range []struct {
		name string
		mat  Mat
		of   int
		rows []Row
		has  bool
	}{
		{"X", t.X, b.Layout.Params, t.XRows, true},
		{"M", t.M, b.Layout.Params, t.Rows, t.Optimiser != Program},
		{"V", t.V, b.Layout.Params, t.Rows, t.Optimiser != Program && t.Optimiser != "sgd"},
		{"Stats", t.Stats, b.Layout.Stats, t.Rows, b.Norms},
		{"Anchor", t.Anchor, b.Layout.Params, t.Rows, t.Anchor.Rows > 0},
		{"Mean", t.Mean, b.Layout.Params, t.Rows, t.Anchor.Rows > 0},
	} {
		if m.has {
			c.mat(m.name, m.mat, 0, m.of)
			c.rows(m.name, m.mat, m.rows)
		}
	}
	if t.Optimiser == Program {
		c.want(t.State.Type == U64 && t.State.Cols == b.Layout.State, "State has rows of %d %s, want %d u64",
			t.State.Cols, t.State.Type, b.Layout.State)
		c.rows("State", Mat{Rows: t.State.Rows}, t.Rows)
	}
	c.want(len(t.XRows) == n, "%d rows of X for %d entries", len(t.XRows), n)
	c.want(len(t.Entries) == n && len(t.Loss) == n, "%d entries and room for %d losses, want %d of each",
		len(t.Entries), len(t.Loss), n)
	c.distinct("Rows", t.Rows)
	c.distinct("XRows", t.XRows)
	for i, e := range t.Entries {
		c.want(len(e.Batches) > 0 && len(e.Masks) == len(e.Batches), "entry %d has %d batches and %d masks",
			i, len(e.Batches), len(e.Masks))
		c.batches(e.Batches, b.minBatch())
	}
	return c.err
}

// Evaluate checks the task.
func (b *Bounds) Evaluate(t *Evaluate) error {
	c := check{b: b, task: "evaluate"}
	n := len(t.Rows)
	c.mat("X", t.X, 0, b.Layout.Params)
	c.rows("X", t.X, t.Rows)
	c.want(len(t.Batches) == n, "%d batches for %d rows", len(t.Batches), n)
	c.want(t.Drawn == nil || len(t.Drawn) == n, "%d batches were drawn, want all %d or none", len(t.Drawn), n)
	c.want(len(t.Loss) == n && len(t.Correct) == n,
		"room for %d losses and %d counts, want %d", len(t.Loss), len(t.Correct), n)
	c.want(t.Squares == nil || len(t.Squares) == n, "room for %d squared errors, want %d", len(t.Squares), n)
	c.batches(t.Batches, 1)
	if b.Norms && t.Stats.Rows > 0 {
		c.mat("Stats", t.Stats, 0, b.Layout.Stats)
		c.rows("Stats", t.Stats, t.Rows)
	} else {
		c.batches(t.Batches, b.minBatch())
	}
	return c.err
}

// Statistics checks the task.
func (b *Bounds) Statistics(t *Statistics) error {
	c := check{b: b, task: "statistics"}
	c.mat("X", t.X, 0, b.Layout.Params)
	c.rows("X", t.X, t.Rows)
	c.batches(t.Batches, b.minBatch())
	if b.Norms {
		c.want(len(t.Batches) > 0, "no batches to take statistics of")
		c.mat("Stats", t.Stats, len(t.Rows), b.Layout.Stats)
	}
	return c.err
}

// Candidates checks the task.
func (b *Bounds) Candidates(t *Candidates) error {
	c := check{b: b, task: "candidates"}
	n := len(t.IDs)
	c.mat("Theta", t.Theta, 1, b.Layout.Params)
	c.want(t.Theta.Rows == 1, "Theta has %d rows, want 1", t.Theta.Rows)
	if t.Scale.Rows > 0 {
		c.mat("Scale", t.Scale, 1, b.Layout.Params)
		c.want(t.Scale.Rows == 1, "Scale has %d rows, want 1", t.Scale.Rows)
	}
	if t.Axes.Rows > 0 {
		c.mat("Axes", t.Axes, 1, b.Layout.Params)
	}
	c.want(len(t.Batches) == 1 || len(t.Batches) == n,
		"%d batches for %d candidates, want 1 or one each", len(t.Batches), n)
	c.want(t.Drawn == nil || len(t.Drawn) == len(t.Batches),
		"%d batches were drawn, want all %d or none", len(t.Drawn), len(t.Batches))
	c.want(len(t.Fitness) == n, "room for %d fitnesses, want %d", len(t.Fitness), n)
	c.batches(t.Batches, b.minBatch())
	if c.err == nil {
		c.err = t.CheckNoise()
	}
	return c.err
}
