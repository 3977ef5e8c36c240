package kernel

// edge is scratch memory for a tile of a product that has unused columns, if the instruction set has no masks: the tile
// reads and writes only this memory, so that nothing outside the matrices is touched.
type edge struct {
	c, gate [edgeRows * edgeCols]float32
	bias    [edgeCols]float32
	start   [edgeCols]int32 // of a panel of bytes, see tileArgs.start
}

// edgeRows and edgeCols are the size of the largest tile that needs it.
const edgeRows, edgeCols = 6, 16

// run computes rows [lo, lo+h) of columns [j, j+n) of a product with a tile of edgeCols columns; c begins at the first
// of them. The results of the other columns stay here.
func (e *edge) run(t *tileArgs, tile func(*tileArgs), h, n, j int, c []float32, ldc, lo int, ep *Epilogue) {
	if t.flags&(flagLoad|flagAdd) != 0 {
		for i := range h {
			copy(e.c[i*edgeCols:][:n], c[i*ldc:])
		}
	}
	if ep.Bias != nil {
		copy(e.bias[:n], ep.Bias[j:])
		t.bias = ptr(e.bias[:], 0)
	}
	if ep.Gate != nil {
		for i := range h {
			copy(e.gate[i*edgeCols:][:n], ep.Gate[(lo+i)*ep.LDGate+j:])
		}
		t.gate, t.ldGate = ptr(e.gate[:], 0), 4*edgeCols
	}
	t.c, t.ldc = ptr(e.c[:], 0), 4*edgeCols
	tile(t)
	t.ldc, t.ldGate = 4*ldc, 4*ep.LDGate
	for i := range h {
		copy(c[i*ldc:][:n], e.c[i*edgeCols:])
	}
}
