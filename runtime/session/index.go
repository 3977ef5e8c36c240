package session

import (
	"encoding/binary"
)

const (
	chunkBytes  = 64 << 10
	indexMagic  = "BROODIDX"
	indexHeader = 16
	indexEntry  = 24
)

// chunk is a sequence of complete frames.
type chunk struct {
	first  uint64 // number of its first record
	off    int64
	length int64
	kinds  uint32
}

// index lists the chunks of a segment from its header to end. All chunks except the last are complete.
type index struct {
	chunks []chunk
	end    int64
	next   uint64 // number of the next record
}

// add appends the frame at x.end.
func (x *index) add(h header) {
	if n := len(x.chunks); n == 0 || x.chunks[n-1].length >= chunkBytes {
		x.chunks = append(x.chunks, chunk{first: h.first, off: x.end})
	}
	c := &x.chunks[len(x.chunks)-1]
	c.length += h.size()
	c.kinds |= h.kinds
	x.end += h.size()
	x.next = h.first + uint64(h.count)
}

// at returns the position in chunks of the last chunk that begins at or before record n; -1 if there is none.
func (x *index) at(n uint64) int {
	lo, hi := 0, len(x.chunks)
	for lo < hi {
		if mid := (lo + hi) / 2; x.chunks[mid].first <= n {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo - 1
}

func putIndexHeader(segment uint32) []byte {
	b := make([]byte, indexHeader)
	copy(b, indexMagic)
	binary.LittleEndian.PutUint16(b[8:], version)
	binary.LittleEndian.PutUint32(b[12:], segment)
	return b
}

func (c chunk) append(b []byte) []byte {
	at := len(b)
	b = binary.LittleEndian.AppendUint64(b, c.first)
	b = binary.LittleEndian.AppendUint32(b, uint32(c.off))
	b = binary.LittleEndian.AppendUint32(b, uint32(c.length))
	b = binary.LittleEndian.AppendUint32(b, c.kinds)
	return binary.LittleEndian.AppendUint32(b, crc(b[at:]))
}

// parseIndex returns the chunks in the index file b of a segment of size bytes, up to the first invalid entry.
func parseIndex(b []byte, segment uint32, size int64) (out []chunk) {
	if len(b) < indexHeader || string(b[:indexHeader]) != string(putIndexHeader(segment)) {
		return nil
	}
	end, first := int64(segmentHeader), uint64(0)
	for b = b[indexHeader:]; len(b) >= indexEntry; b = b[indexEntry:] {
		c := chunk{
			first:  binary.LittleEndian.Uint64(b),
			off:    int64(binary.LittleEndian.Uint32(b[8:])),
			length: int64(binary.LittleEndian.Uint32(b[12:])),
			kinds:  binary.LittleEndian.Uint32(b[16:]),
		}
		intact := crc(b[:20]) == binary.LittleEndian.Uint32(b[20:])
		if !intact || c.off != end || c.length < chunkBytes || c.first < first || end+c.length > size {
			break
		}
		end, first = end+c.length, c.first
		out = append(out, c)
	}
	return out
}
