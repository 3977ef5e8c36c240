package objective

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"brood/models/subprocess"
)

// A frame is a length in bytes of the rest, a kind and a body, all little-endian. See docs/objectives.md.
const (
	protocolVersion = 1

	kindHello   = 1 // brood: version, parameters, tensors with names, shapes and bounds
	kindReady   = 2 // program: version; the count and names of its metrics; requested features
	kindBatch   = 3 // brood: count, width, then ids and seeds, then rows of parameters
	kindResults = 4 // program: count, then ids, each with its fitness and metrics
	kindMemory  = 5 // brood, if requested: bytes and path of a file that the program may map
	kindShared  = 6 // brood: count, width, offset of the rows in that file, then ids and seeds

	wishShared = 1 // feature: parameters in shared memory

	maxMetrics    = 32      // metrics that a program declares
	maxMetricName = 64      // bytes of a name
	maxRows       = 1 << 12 // rows of a batch
	batchBytes    = 4 << 20 // bytes of a batch's parameters, unless a single row has more
)

// page specifies the protocol.
const page = "docs/objectives.md"

var order = subprocess.Order

// reservedSuffixes lists the column suffixes that exports append to a series name.
var reservedSuffixes = []string{".min", ".max"}

// maxRowsOf returns the maximum rows of a batch for a number of parameters.
func maxRowsOf(params int) int { return max(1, min(maxRows, batchBytes/(4*params))) }

// hello returns the first frame to a program, which describes its parameters, and the number of parameters.
func hello(s *Spec) (p []byte, params int, err error) {
	m, err := s.Model()
	if err != nil {
		return nil, 0, err
	}
	p = subprocess.BeginFrame(nil, kindHello)
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
	return subprocess.EndFrame(p), m.Layout.Params, nil
}

// helloReply is the answer of a program to hello: the names of its metrics, and whether it requests shared memory.
type helloReply struct {
	metrics []string
	shared  bool
}

// parseReady parses the body of the answer to hello.
func parseReady(body []byte) (g helloReply, err error) {
	if len(body) < 4 {
		return g, fmt.Errorf("its answer to hello has %d bytes, want 4 or more", len(body))
	}
	if v := order.Uint32(body); v != protocolVersion {
		return g, fmt.Errorf("it speaks version %d of the protocol, and this brood %d", v, protocolVersion)
	}
	if body = body[4:]; len(body) == 0 {
		return g, nil
	}
	cut := errors.New("its answer to hello is cut: behind the version come a u32 count of metrics, " +
		"of each a u32 length and the name, and a u32 of wishes or nothing")
	count, body, ok := takeUint32(body)
	for ok && len(g.metrics) < min(count, maxMetrics+1) {
		n := 0
		if n, body, ok = takeUint32(body); !ok || n > len(body) {
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
	wishes, body, ok := takeUint32(body)
	if !ok || len(body) > 0 {
		return g, cut
	}
	if wishes&^wishShared != 0 {
		return g, fmt.Errorf("it requests the features %#x, but this program has only %#x, shared memory: request "+
			"nothing else",
			wishes, wishShared)
	}
	g.shared = wishes&wishShared != 0
	return g, nil
}

// takeUint32 decodes a u32 at the beginning of p and returns the rest of p.
func takeUint32(p []byte) (n int, rest []byte, ok bool) {
	if len(p) < 4 {
		return 0, p, false
	}
	return int(order.Uint32(p)), p[4:], true
}

// checkMetrics returns an error if there are too many names, or a name is empty, too long, not printable, reserved or a
// duplicate.
func checkMetrics(names []string) error {
	if len(names) > maxMetrics {
		return fmt.Errorf("it declares more than %d metrics: declare fewer", maxMetrics)
	}
	for i, name := range names {
		switch {
		case name == "" || len(name) > maxMetricName || !utf8.ValidString(name) ||
			strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
			return fmt.Errorf("metric %d is named %.80q: give a name of 1 to %d bytes in UTF-8 that can be printed",
				i+1, name, maxMetricName)
		case slices.ContainsFunc(reservedSuffixes, func(end string) bool { return strings.HasSuffix(name, end) }):
			return fmt.Errorf("metric %s ends as columns of exports do, in %s: name it otherwise",
				name, strings.Join(reservedSuffixes, " or "))
		case slices.Contains(names[:i], name):
			return fmt.Errorf("two metrics are named %s: name one otherwise", name)
		}
	}
	return nil
}

// answerError reports an invalid answer that arrived in time. None of its results are used.
type answerError struct{ text string }

func (e *answerError) Error() string { return e.text }

// parseResults parses the body of an answer to the len(fitness) ids from first on, in any order, and writes the fitness
// and a row of metrics for each id. It returns an *answerError unless the answer contains each id exactly once.
func parseResults(body []byte, first uint64, fitness, metrics []float64) error {
	n, size := len(fitness), 16
	if n > 0 {
		size += 8 * (len(metrics) / n)
	}
	if len(body) < 4 || int(order.Uint32(body)) != n || len(body) != 4+size*n {
		return &answerError{fmt.Sprintf("its answer to %d candidates has %d bytes, want a count of %d and %d bytes for each",
			n, len(body), n, size)}
	}
	for i := range fitness {
		fitness[i] = math.Inf(1) // not a valid result; the caller checks the received values
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
