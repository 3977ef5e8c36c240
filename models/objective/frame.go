package objective

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The protocol: frames of a length (of what follows it), a kind and a body, all little-endian. See docs/objectives.md.
const (
	protocolVersion = 1

	kindHello   = 1 // brood: version, parameters, tensors with names, shapes and bounds
	kindReady   = 2 // program: version; the count and names of its metrics; what it wishes
	kindBatch   = 3 // brood: count, width, then ids and seeds, then rows of parameters
	kindResults = 4 // program: count, then ids, each with its fitness and metrics
	kindMemory  = 5 // brood, to a program that wishes for it: bytes and path of a file that it may map
	kindShared  = 6 // brood: count, width, where the rows begin in that file, then ids and seeds

	wishShared = 1 // parameters in shared memory

	mostReply      = 2 << 20 // bytes of a frame from a program
	mostMetrics    = 32      // names that it declares
	mostMetricName = 64      // bytes of one
	mostRows       = 1 << 12 // of a batch
	batchBytes     = 4 << 20 // of its parameters, unless one row has more
)

var order = binary.LittleEndian

// reserved are the endings of columns that exports make of one series.
var reserved = []string{".min", ".max"}

// rowsOf is the most rows of so many parameters in a batch.
func rowsOf(params int) int { return max(1, min(mostRows, batchBytes/(4*params))) }

// begin is an empty frame of a kind, and end fills its length in.
func begin(p []byte, kind byte) []byte { return append(p[:0], 0, 0, 0, 0, kind) }

func end(p []byte) []byte {
	order.PutUint32(p, uint32(len(p)-4))
	return p
}

// hello tells a program what it will be given.
func hello(s *Spec) (p []byte, params int, err error) {
	m, err := s.Model()
	if err != nil {
		return nil, 0, err
	}
	p = begin(nil, kindHello)
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
	return end(p), m.Layout.Params, nil
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
		return buf, fmt.Errorf("it sent a frame of kind %d, and %d was due: docs/objectives.md says what a program sends", head[4], kind)
	}
	if cap(buf) < int(n-1) {
		buf = make([]byte, n-1)
	}
	buf = buf[:n-1]
	_, err := io.ReadFull(r, buf)
	return buf, err
}

// greeted is what a program answers to hello: the names of its metrics, and whether it wishes for shared memory.
type greeted struct {
	metrics []string
	shared  bool
}

// ready checks the answer to hello.
func ready(body []byte) (g greeted, err error) {
	if len(body) < 4 {
		return g, fmt.Errorf("its answer to hello has %d bytes, want 4 or more", len(body))
	}
	if v := order.Uint32(body); v != protocolVersion {
		return g, fmt.Errorf("it speaks version %d of the protocol, and this brood %d", v, protocolVersion)
	}
	if body = body[4:]; len(body) == 0 {
		return g, nil
	}
	cut := errors.New("its answer to hello is cut: behind the version come a u32 count of metrics, of each a u32 length and the name, and a u32 of wishes or nothing")
	count, body, ok := number(body)
	for ok && len(g.metrics) < min(count, mostMetrics+1) {
		n := 0
		if n, body, ok = number(body); !ok || n > len(body) {
			return g, cut
		}
		g.metrics, body = append(g.metrics, string(body[:n])), body[n:]
	}
	if err := checkMetrics(g.metrics); err != nil || !ok {
		return g, cmp.Or(err, cut)
	}
	if len(body) == 0 {
		return g, nil
	}
	wishes, body, ok := number(body)
	if !ok || len(body) > 0 {
		return g, cut
	}
	if wishes&^wishShared != 0 {
		return g, fmt.Errorf("it wishes for %#x, and this brood knows %#x alone, shared memory: leave out what is not known", wishes, wishShared)
	}
	g.shared = wishes&wishShared != 0
	return g, nil
}

// number takes a u32 off.
func number(p []byte) (n int, rest []byte, ok bool) {
	if len(p) < 4 {
		return 0, p, false
	}
	return int(order.Uint32(p)), p[4:], true
}

// checkMetrics refuses names that no chart or file could show.
func checkMetrics(names []string) error {
	if len(names) > mostMetrics {
		return fmt.Errorf("it declares more than %d metrics: declare fewer", mostMetrics)
	}
	for i, name := range names {
		switch {
		case name == "" || len(name) > mostMetricName || !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
			return fmt.Errorf("metric %d is named %.80q: give a name of 1 to %d bytes in UTF-8 that can be printed", i+1, name, mostMetricName)
		case slices.ContainsFunc(reserved, func(end string) bool { return strings.HasSuffix(name, end) }):
			return fmt.Errorf("metric %s ends as columns of exports do, in %s: name it otherwise", name, strings.Join(reserved, " or "))
		case slices.Contains(names[:i], name):
			return fmt.Errorf("two metrics are named %s: name one otherwise", name)
		}
	}
	return nil
}

// answerError is of an answer that came in time, and is none to what was asked: nothing in it is believed.
type answerError struct{ text string }

func (e *answerError) Error() string { return e.text }

// results checks an answer to the n ids from first on, each once and in any order, and writes the fitness of each, and
// its metrics, a row for each id.
func results(body []byte, first uint64, fitness, metrics []float64) error {
	n, size := len(fitness), 16
	if n > 0 {
		size += 8 * (len(metrics) / n)
	}
	if len(body) < 4 || int(order.Uint32(body)) != n || len(body) != 4+size*n {
		return &answerError{fmt.Sprintf("its answer to %d candidates has %d bytes, want a count of %d and %d bytes for each", n, len(body), n, size)}
	}
	for i := range fitness {
		fitness[i] = math.Inf(1) // none yet: what is sent is checked below
	}
	seen := make([]bool, n)
	for at := 4; at < len(body); at += size {
		id := order.Uint64(body[at:]) - first
		if id >= uint64(n) || seen[id] {
			return &answerError{"its answer names a candidate twice, or one that it was not given"}
		}
		seen[id] = true
		fitness[id] = math.Float64frombits(order.Uint64(body[at+8:]))
		for k, row := 0, metrics[int(id)*(size-16)/8:]; k < (size-16)/8; k++ {
			row[k] = math.Float64frombits(order.Uint64(body[at+16+8*k:]))
		}
	}
	return nil
}
