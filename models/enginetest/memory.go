package enginetest

import (
	"context"
	"testing"

	"brood/models/engine"
)

// memory: initially zero, written and read in spans, freed and reallocated.
func (b *bench) memory(t *testing.T) {
	ctx, e := context.Background(), b.make(t, b.m, b.set, 1)
	m, err := e.Alloc(3, 5)
	if err != nil || m.Rows != 3 || m.Cols != 5 {
		t.Fatalf("allocated %+v: %v", m, err)
	}
	read := func(s engine.Span) []float32 {
		p := make([]byte, s.Bytes())
		if err := e.Read(ctx, p, s); err != nil {
			t.Fatal(err)
		}
		out := make([]float32, len(p)/4)
		engine.ReadFloats(out, p)
		return out
	}
	same(t, "new", read(engine.All(m)), make([]float32, 15))
	p := engine.AppendFloats(nil, []float32{7, 8, 9, 10})
	if err := e.Write(ctx, engine.Span{Mat: m, Row: 1, Rows: 2, Lo: 2, Hi: 4}, p); err != nil {
		t.Fatal(err)
	}
	clear(p) // p may be reused
	same(t, "written", read(engine.All(m)), []float32{0, 0, 0, 0, 0, 0, 0, 7, 8, 0, 0, 0, 9, 10, 0})
	same(t, "view", read(engine.Span{Mat: m.Sub(1, 2), Row: 1, Rows: 1, Lo: 1, Hi: 4}), []float32{0, 9, 10})
	if err := e.Do(ctx, engine.Copy{Dst: engine.Span{
		Mat:  m,
		Rows: 1,
		Lo:   0,
		Hi:   2,
	}, Src: engine.Span{Mat: m, Row: 2, Rows: 1, Lo: 2, Hi: 4}}); err != nil {
		t.Fatal(err)
	}
	same(t, "copied", read(engine.All(m.Sub(0, 1))), []float32{9, 10, 0, 0, 0})
	for name, s := range map[string]engine.Span{"rows": {
		Mat:  m,
		Row:  2,
		Rows: 2,
		Hi:   2,
	}, "columns": {
		Mat:  m,
		Rows: 1,
		Lo:   4,
		Hi:   6,
	}, "order": {Mat: m, Rows: 1, Lo: 2, Hi: 1}, "no memory": engine.All(engine.Mat{Rows: 1, Cols: 1})} {
		if e.Write(ctx, s, make([]byte, max(0, s.Bytes()))) == nil || e.Read(ctx, make([]byte, max(0, s.Bytes())), s) == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if e.Write(ctx, engine.All(m), p) == nil || e.Read(ctx, p, engine.All(m)) == nil {
		t.Error("bytes of another number of elements: no error")
	}
	for _, none := range [][2]int{{0, 4}, {4, 0}} { // a worker without members, a model without statistics
		z, err := e.Alloc(none[0], none[1])
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Write(ctx, engine.All(z), nil); err != nil {
			t.Error(err)
		}
		ok, hash := make([]bool, none[0]), make([][32]byte, none[0])
		if err := e.Do(ctx, engine.Finite{X: z, OK: ok}, engine.Digest{X: z, Hash: hash}, engine.Fill{Dst: engine.All(z)},
			engine.Copy{Dst: engine.All(z), Src: engine.All(z)},
			engine.Update{Prog: []engine.Lin{{Dst: z}}}); err != nil {
			t.Error(err)
		}
		if err := e.Read(ctx, nil, engine.All(z)); err != nil {
			t.Error(err)
		}
		e.Free(z)
	}
	e.Free(m)
	if _, err := e.Alloc(1<<40, 1<<40); err == nil {
		t.Error("a matrix of 2^80 elements was allocated")
	}
	again, err := e.Alloc(3, 5)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "had again", read(engine.All(again)), make([]float32, 15))
	e.Free(again)
}
