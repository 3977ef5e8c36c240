package objective

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// The protocol: frames of a length (of what follows it), a kind and a body, all little-endian. See docs/objectives.md.
const (
	protocolVersion = 1

	kindHello   = 1 // brood: version, parameters, tensors with names, shapes and bounds
	kindReady   = 2 // program: version
	kindBatch   = 3 // brood: count, width, then ids and seeds, then rows of parameters
	kindResults = 4 // program: count, then ids and fitnesses

	mostReply  = 1 << 20 // bytes of a frame from a program
	mostRows   = 1 << 12 // of a batch
	batchBytes = 4 << 20 // of its parameters, unless one row has more
)

var order = binary.LittleEndian

// begin is an empty frame of a kind, and end fills its length in.
func begin(p []byte, kind byte) []byte { return append(p[:0], 0, 0, 0, 0, kind) }

func end(p []byte) []byte {
	order.PutUint32(p, uint32(len(p)-4))
	return p
}

// hello tells a program what it will be given.
func hello(s *Spec) ([]byte, error) {
	m, err := s.Model()
	if err != nil {
		return nil, err
	}
	p := begin(nil, kindHello)
	p = order.AppendUint32(p, protocolVersion)
	p = order.AppendUint32(p, uint32(m.Layout.Params))
	p = order.AppendUint32(p, uint32(len(m.Layout.Tensors)))
	for i, t := range m.Layout.Tensors {
		p = order.AppendUint32(p, uint32(len(t.Name)))
		p = append(p, t.Name...)
		p = order.AppendUint32(p, uint32(len(t.Shape)))
		for _, d := range t.Shape {
			p = order.AppendUint32(p, uint32(d))
		}
		low, high := s.Params[i].bounds()
		p = order.AppendUint32(p, math.Float32bits(low))
		p = order.AppendUint32(p, math.Float32bits(high))
	}
	return end(p), nil
}

// frame reads one frame of a kind into buf, and returns its body.
func frame(r io.Reader, buf []byte, kind byte) ([]byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return buf, err
	}
	n := order.Uint32(head[:])
	if n < 1 || n > mostReply {
		return buf, fmt.Errorf("it sent a frame of %d bytes, where 1 to %d are allowed: does it print text to its standard output?", n, mostReply)
	}
	if head[4] != kind {
		return buf, fmt.Errorf("it sent a frame of kind %d, and %d was due", head[4], kind)
	}
	if cap(buf) < int(n-1) {
		buf = make([]byte, n-1)
	}
	buf = buf[:n-1]
	_, err := io.ReadFull(r, buf)
	return buf, err
}

// ready checks the answer to hello.
func ready(body []byte) error {
	if len(body) != 4 {
		return fmt.Errorf("its answer to hello has %d bytes, want 4", len(body))
	}
	if v := order.Uint32(body); v != protocolVersion {
		return fmt.Errorf("it speaks version %d of the protocol, and this brood %d", v, protocolVersion)
	}
	return nil
}

// results checks an answer to the n ids from first on, each once and in any order, and writes the fitness of each.
func results(body []byte, first uint64, fitness []float64) error {
	n := len(fitness)
	if len(body) < 4 || int(order.Uint32(body)) != n || len(body) != 4+16*n {
		return fmt.Errorf("its answer to %d candidates has %d bytes, want a count of %d and 16 bytes for each", n, len(body), n)
	}
	for i := range fitness {
		fitness[i] = math.Inf(1) // none yet: what is sent is checked below
	}
	seen := make([]bool, n)
	for at := 4; at < len(body); at += 16 {
		id := order.Uint64(body[at:]) - first
		if id >= uint64(n) || seen[id] {
			return errors.New("its answer names a candidate twice, or one that it was not given")
		}
		seen[id] = true
		fitness[id] = math.Float64frombits(order.Uint64(body[at+8:]))
	}
	return nil
}
