package message

import (
	"cmp"
	"slices"
	"strings"
)

// Digest is the hash of the bytes of a row.
type Digest struct {
	Row string // "block/shared", or "block/" and a member
	Sum [32]byte
}

// Digests holds the digests of the rows of a worker, without duplicates, in the order of Sort. The rows of a worker are
// the same for a whole epoch, so that two reports can be compared row by row. On the wire it is a map.
type Digests []Digest

// DigestsOf returns the digests of a map, sorted.
func DigestsOf(m map[string][32]byte) Digests {
	d := make(Digests, 0, len(m))
	for row, sum := range m {
		d = append(d, Digest{row, sum})
	}
	d.Sort()
	return d
}

// Map returns the digests by row.
func (d Digests) Map() map[string][32]byte {
	m := make(map[string][32]byte, len(d))
	for _, x := range d {
		m[x.Row] = x.Sum
	}
	return m
}

// Sort sorts shared rows first, by block, then the rows of members, by block and member.
func (d Digests) Sort() { slices.SortFunc(d, Digest.compare) }

// InOrder reports whether the digests are sorted and without duplicates.
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

// shared replaces the member in the name of a shared row.
const shared = "shared"

// Parts returns the block of a row, and its member or "shared".
func (x Digest) Parts() (block, of string) {
	at := strings.LastIndexByte(x.Row, '/')
	return x.Row[:max(at, 0)], x.Row[at+1:]
}

// IsZero reports whether there are none, so that the encoder omits them.
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
