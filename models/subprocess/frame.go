package subprocess

import (
	"encoding/binary"
	"fmt"
	"io"
)

// A frame is a u32 length of the rest, a u8 kind and a body; all numbers are little-endian.

// maxFrame is the maximum bytes of a frame from a program: the kind and the body.
const maxFrame = 2 << 20

// Order is the byte order of frames.
var Order = binary.LittleEndian

// BeginFrame returns an empty frame of a kind in the memory of p. Append the body, then call EndFrame.
func BeginFrame(p []byte, kind byte) []byte { return append(p[:0], 0, 0, 0, 0, kind) }

// EndFrame sets the length of the frame p.
func EndFrame(p []byte) []byte {
	Order.PutUint32(p, uint32(len(p)-4))
	return p
}

// ReadFrame reads one frame of a kind and returns its body, in the memory of buf if that is large enough. doc names the
// page that specifies the protocol, for the error about a frame of another kind.
func ReadFrame(r io.Reader, buf []byte, kind byte, doc string) ([]byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return buf, err
	}
	n := Order.Uint32(head[:])
	if n < 1 || n > maxFrame {
		return buf, fmt.Errorf("it sent a frame of %d bytes, where 1 to %d are allowed: "+
			"does it print text to its standard output?", n, maxFrame)
	}
	if head[4] != kind {
		return buf, fmt.Errorf("it sent a frame of kind %d instead of %d: see %s", head[4], kind, doc)
	}
	if cap(buf) < int(n-1) {
		buf = make([]byte, n-1)
	}
	buf = buf[:n-1]
	_, err := io.ReadFull(r, buf)
	return buf, err
}
