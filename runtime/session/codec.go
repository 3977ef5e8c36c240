package session

import (
	"encoding/binary"
	"fmt"

	"github.com/fxamacker/cbor/v2"
	"github.com/klauspost/compress/zstd"

	"brood/runtime/event"
)

// maxElements bounds the elements of an array in a record: one value per member. Forged empty edits up to this bound
// take 27 MB.
const maxElements = event.MaxMembers

// coder encodes records and frames, and decodes them. It is not safe for concurrent use.
type coder struct {
	enc  cbor.EncMode
	dec  cbor.DecMode
	zenc *zstd.Encoder
	zdec *zstd.Decoder
}

func newCoder() (*coder, error) {
	enc, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		return nil, fmt.Errorf("session: cbor: %w", err)
	}
	dec, err := cbor.DecOptions{
		DupMapKey:        cbor.DupMapKeyEnforcedAPF,
		IndefLength:      cbor.IndefLengthForbidden,
		TagsMd:           cbor.TagsForbidden,
		UTF8:             cbor.UTF8DecodeInvalid, // accept any text that could be written
		MaxNestedLevels:  16,
		MaxArrayElements: maxElements,
		MaxMapPairs:      4096,
	}.DecMode()
	if err != nil {
		return nil, fmt.Errorf("session: cbor: %w", err)
	}
	zenc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderCRC(false), zstd.WithWindowSize(1<<20))
	if err != nil {
		return nil, fmt.Errorf("session: zstd: %w", err)
	}
	zdec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxPayload),
		zstd.WithDecoderMaxWindow(maxPayload), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		return nil, fmt.Errorf("session: zstd: %w", err)
	}
	return &coder{enc, dec, zenc, zdec}, nil
}

func (c *coder) close() {
	c.zdec.Close()
	_ = c.zenc.Close() // cannot fail: it was not used as a stream
}

// kindOf returns the CBOR key of the field that is set in r; ok is false unless exactly one is set.
func kindOf(r event.Record) (kind int, ok bool) {
	n := 0
	for k, set := range [...]bool{
		1:  r.Config != nil,
		2:  r.Plan != nil,
		3:  r.Edit != nil,
		4:  r.Commit != nil,
		5:  r.Points != nil,
		6:  r.Evaluation != nil,
		7:  r.Alert != nil,
		8:  r.Checkpoint != nil,
		9:  r.State != nil,
		10: r.Accepted != nil,
		11: r.Machines != nil,
	} {
		if set {
			kind, n = k, n+1
		}
	}
	return kind, n == 1
}

// record encodes r and returns its kind. It returns an error if decode would reject the result.
func (c *coder) record(r event.Record) ([]byte, int, error) {
	kind, ok := kindOf(r)
	if !ok {
		return nil, 0, fmt.Errorf("session: a record must hold exactly one of its kinds")
	}
	b, err := c.enc.Marshal(r)
	if err != nil {
		return nil, 0, fmt.Errorf("session: encode a record: %w", err)
	}
	if len(b) > maxRecord {
		return nil, 0, fmt.Errorf("session: a record of %d bytes is over the limit of %d: use fewer members or fewer series",
			len(b), maxRecord)
	}
	// Smaller records cannot exceed the limits: arrays are too short, and the types bound nesting and most maps.
	if len(b) > 4096 {
		if err := c.dec.Wellformed(b); err != nil {
			return nil, 0, fmt.Errorf("session: a record that could not be read again: %w", err)
		}
	}
	return b, kind, nil
}

// decode is the inverse of record. Its input is untrusted. It returns a record without a field for kinds that this
// version does not know.
func (c *coder) decode(b []byte) (r event.Record, err error) {
	if err := c.dec.Unmarshal(b, &r); err != nil {
		return event.Record{}, badFrame("a record is invalid: " + err.Error())
	}
	if _, ok := kindOf(r); !ok && (r != event.Record{At: r.At}) {
		return event.Record{}, badFrame("a record holds several kinds")
	}
	return r, nil
}

// frame appends a frame with the given uncompressed payload to dst. The caller sets kinds, count and first in h; frame
// returns the complete header.
func (c *coder) frame(dst []byte, h header, plain []byte) ([]byte, header) {
	at := len(dst)
	dst = append(dst, make([]byte, frameHeader)...)
	dst = c.zenc.EncodeAll(plain, dst)
	h.flags = flagZstd
	if len(dst)-at-frameHeader >= len(plain) {
		h.flags, dst = 0, append(dst[:at+frameHeader], plain...)
	}
	body := dst[at+frameHeader:]
	h.plain, h.stored, h.payload = uint32(len(plain)), uint32(len(body)), crc(body)
	h.put(dst[at:])
	return dst, h
}

// open returns the uncompressed payload of a frame whose checksum was verified. The caller owns the result.
func (c *coder) open(h header, stored []byte) ([]byte, error) {
	plain := make([]byte, 0, h.plain)
	if h.flags&flagZstd == 0 {
		return append(plain, stored...), nil
	}
	plain, err := c.zdec.DecodeAll(stored, plain)
	if err != nil {
		return nil, badFrame("the payload does not decompress: " + err.Error())
	}
	if len(plain) != int(h.plain) {
		return nil, badFrame(fmt.Sprintf("the payload has %d bytes, not %d", len(plain), h.plain))
	}
	return plain, nil
}

// split returns the count encoded records in an uncompressed payload. They share its memory. It returns an error if the
// payload contains another number of records.
func split(plain []byte, count int) ([][]byte, error) {
	out := make([][]byte, 0, count)
	for len(plain) > 0 {
		if len(plain) < 4 || len(out) == count {
			return nil, badFrame("bytes after the last record")
		}
		n := binary.LittleEndian.Uint32(plain)
		if n == 0 || n > maxRecord || int(n) > len(plain)-4 {
			return nil, badFrame(fmt.Sprintf("a record of %d bytes in %d", n, len(plain)-4))
		}
		out, plain = append(out, plain[4:4+n:4+n]), plain[4+n:]
	}
	if len(out) != count {
		return nil, badFrame(fmt.Sprintf("%d records instead of %d", len(out), count))
	}
	return out, nil
}
