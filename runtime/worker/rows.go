package worker

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"brood/models/engine"
	"brood/optim"
)

// state holds all blocks of an epoch: those in the engine's memory, and the records.
type state struct {
	blocks  map[string]engine.Mat
	records map[string]engine.Host
}

func stateOf(env *optim.Env) state { return state{env.Blocks, env.Records} }

type row struct {
	block  string
	member engine.Member // engine.None in a shared block
	cols   int
	mat    engine.Mat  // 1 row; zero for a record
	record engine.Host // 1 row of a record, if mat is zero
}

// name returns the row's name in digests and checkpoints: "block/member" or "block/shared".
func (r row) name() string {
	if r.member == engine.None {
		return r.block + "/shared"
	}
	return fmt.Sprintf("%s/%d", r.block, r.member)
}

func (r row) dtype() engine.DType {
	if r.mat.Rows > 0 {
		return engine.F32
	}
	return r.record.Type
}

// write sets the row from its bytes in p.
func (r row) write(ctx context.Context, e engine.Engine, p []byte) error {
	if r.mat.Rows > 0 {
		return e.Write(ctx, engine.All(r.mat), p)
	}
	engine.ReadRow(r.record, 0, p)
	return nil
}

// rows lists the rows of all blocks, sorted by block and then in the order of mine.
func (s state) rows(mine []engine.Member, shared map[string]bool) (out []row) {
	names := slices.AppendSeq(slices.Collect(maps.Keys(s.blocks)), maps.Keys(s.records))
	slices.Sort(names)
	for _, b := range names {
		mat, isMat := s.blocks[b]
		record := s.records[b]
		members := mine
		if shared[b] {
			members = []engine.Member{engine.None}
		}
		for i, m := range members {
			r := row{block: b, member: m}
			if isMat {
				r.mat, r.cols = mat.Sub(engine.Row(i), 1), mat.Cols
			} else {
				r.record, r.cols = record.Sub(engine.Row(i), 1), record.Cols
			}
			out = append(out, r)
		}
	}
	return out
}

// copyState copies the records of src to dst and returns the tasks that copy the other blocks. dst has the same shape.
func copyState(dst, src state) (tasks []engine.Task) {
	for _, name := range slices.Sorted(maps.Keys(src.blocks)) {
		tasks = append(tasks, engine.Copy{Dst: engine.All(dst.blocks[name]), Src: engine.All(src.blocks[name])})
	}
	for name, r := range src.records {
		dst.records[name].Set(r)
	}
	return tasks
}

// allocLike allocates a state of the same shape. After an error nothing stays allocated.
func (s state) allocLike(e engine.Engine) (c state, err error) {
	c = state{map[string]engine.Mat{}, map[string]engine.Host{}}
	for name, m := range s.blocks {
		if c.blocks[name], err = e.Alloc(m.Rows, m.Cols); err != nil {
			delete(c.blocks, name)
			c.free(e)
			return c, err
		}
	}
	for name, r := range s.records {
		c.records[name] = engine.NewHost(r.Rows, r.Cols, r.Type)
	}
	return c, nil
}

func (s state) free(e engine.Engine) {
	for _, m := range s.blocks {
		e.Free(m)
	}
}
