package native_test

import (
	"context"
	"fmt"
	"log"

	"brood/models/engine"
	"brood/models/native"
)

// The caller allocates memory in an engine, writes it, runs tasks and reads the elements back. Here the rows of a
// matrix are added along a tree and divided by their number.
func ExampleVector() {
	ctx := context.Background()
	e, err := native.New(engine.Layout{}, 1)
	if err != nil {
		log.Fatal(err)
	}
	x, err := e.Alloc(2, 3)
	if err != nil {
		log.Fatal(err)
	}
	mean, err := e.Alloc(1, 3)
	if err != nil {
		log.Fatal(err)
	}
	if err := e.Write(ctx, engine.All(x), engine.AppendFloats(nil, []float32{1, 2, 3, 4, 5, 6})); err != nil {
		log.Fatal(err)
	}
	sum := engine.Sum{
		Dst:  engine.All(mean),
		Src:  []engine.Span{engine.RowOf(x, 0), engine.RowOf(x, 1)},
		Tree: [][2]int{{0, 1}},
		Div:  2,
	}
	finite := make([]bool, 2)
	if err := e.Do(ctx, sum, engine.Finite{X: x, OK: finite}); err != nil {
		log.Fatal(err)
	}
	p, out := make([]byte, mean.Bytes()), make([]float32, 3)
	// Waits for the tasks, so that finite contains its results too.
	if err := e.Read(ctx, p, engine.All(mean)); err != nil {
		log.Fatal(err)
	}
	engine.ReadFloats(out, p)
	fmt.Println(out, finite)
	e.Free(x)
	e.Free(mean)
	// Output: [2.5 3.5 4.5] [true true]
}
