package message

import (
	"cmp"
	"slices"
	"strings"
)

// Digest is what the bytes of a row hash to.
type Digest struct {
	Row string // "block/shared", or "block/" and a member
	Sum [32]byte
}

// Digests are those of the rows that a worker holds, each once, in the order that Sort gives them: what a worker holds
// is the same for a whole epoch, and two reports of it are compared row by row. On the wire they are a map.
type Digests []Digest

// DigestsOf puts those of a map in order.
func DigestsOf(m map[string][32]byte) Digests {
	d := make(Digests, 0, len(m))
	for row, sum := range m {
		d = append(d, Digest{row, sum})
	}
	d.Sort()
	return d
}

// Map has the sum of each row.
func (d Digests) Map() map[string][32]byte {
	m := make(map[string][32]byte, len(d))
	for _, x := range d {
		m[x.Row] = x.Sum
	}
	return m
}

// Sort puts shared rows first, by their blocks; behind them are those of members, by their blocks and then by member.
func (d Digests) Sort() { slices.SortFunc(d, Digest.compare) }

// InOrder says whether they are in order, and each there once.
func (d Digests) InOrder() bool {
	for i := 1; i < len(d); i++ {
		if d[i-1].compare(d[i]) >= 0 {
			return false
		}
	}
	return true
}

func (x Digest) compare(y Digest) int {
	a, m := x.Parts()
	b, n := y.Parts()
	if s, t := m == shared, n == shared; s != t {
		if s {
			return -1
		}
		return 1
	}
	return cmp.Or(strings.Compare(a, b), len(m)-len(n), strings.Compare(m, n), len(x.Row)-len(y.Row))
}

// shared is in the place of a member where a row is everybody's.
const shared = "shared"

// Parts are the block that a row belongs to, and the member whose it is, or "shared".
func (x Digest) Parts() (block, of string) {
	at := strings.LastIndexByte(x.Row, '/')
	return x.Row[:max(at, 0)], x.Row[at+1:]
}

// IsZero says that there are none, so that a report without them does not name them.
func (d Digests) IsZero() bool { return len(d) == 0 }

// MarshalCBOR implements cbor.Marshaler.
func (d Digests) MarshalCBOR() ([]byte, error) { return encoding.Marshal(d.Map()) }

// UnmarshalCBOR implements cbor.Unmarshaler.
func (d *Digests) UnmarshalCBOR(p []byte) error {
	var m map[string][32]byte
	if err := decoding.Unmarshal(p, &m); err != nil {
		return err
	}
	*d = DigestsOf(m)
	return nil
}
