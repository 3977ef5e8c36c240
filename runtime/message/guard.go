package message

import (
	"encoding/binary"
	"errors"
	"fmt"

	"brood/transport/wire"
)

// mostOf is the largest size of a worker's message in bytes, by kind. Other kinds are bounded by the size of a frame.
var mostOf = map[uint16]int{
	kindFailed:    1 << 16,
	kindSaved:     1 << 16,
	kindGet:       1 << 12,
	kindPiece:     MaxPiece + 1<<12,
	kindLeaving:   1 << 6,
	kindTelemetry: 1 << 18,
}

// mostWeight is the largest memory of a decoded message of a worker in bytes, see weigh. Valid messages need far less:
// points are bounded by MostPoints, and other content needs little more memory than its size on the wire.
const mostWeight = 32 << 20

// MostPoints is the largest weight of the points of one report in bytes, so that the report fits into a message. The
// coordinator limits the rounds of a grant accordingly. The weight of points exceeds their size on the wire.
const MostPoints = 6 << 20

// PointsWeight returns an upper bound of the weight of the points of one series in one round, for the length of the
// name of the series in bytes and the number of values.
func PointsWeight(name, values int) int {
	return recordWeight + 4*(pairWeight+valueWeight) + valueWeight + 2*valueWeight + name +
		2*(3*valueWeight+values*valueWeight)
}

// validateSize fails if a body is larger than messages of its kind, or if it would need more than mostWeight bytes of
// memory.
func validateSize(kind uint16, body []byte) error {
	if most, ok := mostOf[kind]; ok && len(body) > most {
		return fmt.Errorf("message of kind %d: %d bytes exceed the limit of %d", kind, len(body), most)
	}
	if !FromWorker(kind) {
		return nil
	}
	_, bytes, err := weigh(body, 0)
	if err == nil && bytes > mostWeight {
		err = fmt.Errorf("message of kind %d: decoding its %d bytes would need %d MiB", kind, len(body), bytes>>20)
	}
	return err
}

// Memory in bytes of a record or map without its entries, of a pair of a map, and of any other value.
const recordWeight, pairWeight, valueWeight = 96, 64, 8

var errCBOR = errors.New("message ends within a value, or is nested too deeply")

// weigh returns an upper bound of the memory of the first decoded item of CBOR in bytes, and the text after it. A null
// counts as a record, since an array of records may contain nulls.
func weigh(p []byte, depth int) (rest []byte, bytes int, err error) {
	if len(p) == 0 || depth > 16 {
		return nil, 0, errCBOR
	}
	major, n := p[0]>>5, uint64(p[0]&31)
	p = p[1:]
	if n >= 24 {
		size := 1 << (n - 24)
		if n > 27 || len(p) < size {
			return nil, 0, errCBOR
		}
		n = binary.BigEndian.Uint64(append(make([]byte, 8-size, 8), p[:size]...))
		p = p[size:]
	}
	items := uint64(0)
	if major >= 2 && major <= 5 && n > uint64(len(p)) {
		return nil, 0, errCBOR
	}
	switch major {
	case 2, 3: // bytes and text
		return p[n:], 2*valueWeight + int(n), nil
	case 4:
		items, bytes = n, 3*valueWeight
	case 5:
		items, bytes = 2*n, recordWeight+int(n)*pairWeight
	case 7:
		if n == 22 || n == 23 {
			return p, recordWeight, nil
		}
		return p, valueWeight, nil
	default:
		return p, valueWeight, nil
	}
	if items > uint64(len(p)) {
		return nil, 0, errCBOR
	}
	for range items {
		var one int
		if p, one, err = weigh(p, depth+1); err != nil {
			return nil, 0, err
		}
		bytes += one
	}
	return p, bytes, nil
}

// cleaned removes control characters from texts that are shown to users.
func cleaned(m any) any {
	switch m := m.(type) {
	case Failed:
		m.Err = wire.CleanText(m.Err)
		return m
	case Saved:
		m.Err = wire.CleanText(m.Err)
		return m
	case Audited:
		m.Err = wire.CleanText(m.Err)
		return m
	case Evict:
		m.Why = wire.CleanText(m.Why)
		return m
	}
	return m
}
