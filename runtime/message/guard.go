package message

import (
	"encoding/binary"
	"errors"
	"fmt"

	"brood/transport/wire"
)

// mostOf are the bytes that a worker's message of a kind may have; those of other kinds are bounded by their frame.
var mostOf = map[uint16]int{
	kindReady:     1 << 10,
	kindFailed:    1 << 16,
	kindSaved:     1 << 16,
	kindGet:       1 << 12,
	kindPiece:     MaxPiece + 1<<12,
	kindLeaving:   1 << 6,
	kindTelemetry: 1 << 18,
}

// mostWeight is what a worker's message may take in memory: far more than an honest one, since points of a report are
// bounded by MostPoints, and all else that is worth a frame weighs little more than it takes there.
const mostWeight = 32 << 20

// MostPoints is what the points of one report may weigh, so that the report with all else that it holds fits into a
// message: the coordinator grants no more rounds than that. Points weigh more than they take on the wire.
const MostPoints = 6 << 20

// PointsWeight is what the points of one series in one round weigh at most, of so many values, and a name of so many
// bytes.
func PointsWeight(name, values int) int {
	return recordWeight + 4*(pairWeight+valueWeight) + valueWeight + 2*valueWeight + name +
		2*(3*valueWeight+values*valueWeight)
}

// admits says whether a body may be decoded: it is not larger than its kind ever is, and does not become much more in
// memory.
func admits(kind uint16, body []byte) error {
	if most, ok := mostOf[kind]; ok && len(body) > most {
		return fmt.Errorf("a message of kind %d has %d bytes, and never more than %d", kind, len(body), most)
	}
	if !FromWorker(kind) {
		return nil
	}
	_, bytes, err := weigh(body, 0)
	if err == nil && bytes > mostWeight {
		err = fmt.Errorf("a message of kind %d and %d bytes would take %d MiB", kind, len(body), bytes>>20)
	}
	return err
}

// Bytes of memory: of a record or map beside its entries, of a pair of a map, of any other value.
const recordWeight, pairWeight, valueWeight = 96, 64, 8

var errCBOR = errors.New("a message ends within a value, or nests too deeply")

// weigh estimates from above the memory that the first item of CBOR becomes, and returns what follows it. A null counts
// as a record, for an array of records may be made of them.
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

// cleaned takes control characters out of sentences that are shown to people.
func cleaned(m any) any {
	switch m := m.(type) {
	case Failed:
		m.Err = wire.CleanText(m.Err)
		return m
	case Saved:
		m.Err = wire.CleanText(m.Err)
		return m
	case Away:
		m.Why = wire.CleanText(m.Why)
		return m
	}
	return m
}
