package engine

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"
)

// TestFloatBytes compares the memory copy with the definition, byte by byte, at every length and offset.
func TestFloatBytes(t *testing.T) {
	v := []float32{0, 1, -2.5, float32(math.Inf(1)), math.Float32frombits(0x7fc00123), math.MaxFloat32, 1e-45}
	for n := range len(v) + 1 {
		for lead := range 5 {
			want := make([]byte, lead)
			for _, x := range v[:n] {
				want = binary.LittleEndian.AppendUint32(want, math.Float32bits(x))
			}
			got := AppendFloats(make([]byte, lead, lead+1), v[:n])
			if !bytes.Equal(got, want) {
				t.Fatalf("%d floats behind %d bytes: %x, want %x", n, lead, got, want)
			}
			back := make([]float32, n)
			ReadFloats(back, append(got[lead:], 9, 9)) // more bytes may follow
			for i, x := range back {
				if math.Float32bits(x) != math.Float32bits(v[i]) {
					t.Errorf("element %d comes back as %v, was %v", i, x, v[i])
				}
			}
		}
	}
	for n := range 4 {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%d bytes were read as a float", n)
				}
			}()
			ReadFloats(make([]float32, 1), make([]byte, n))
		}()
	}
}
