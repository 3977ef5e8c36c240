package session

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Sizes and limits of the format; docs/session-format.md explains them.
const (
	version       = 1
	segmentHeader = 32
	frameHeader   = 36
	frameRecords  = 64
	framePlain    = 1 << 20 // uncompressed size from which on no more records are added to a frame
	maxPayload    = 16 << 20
	maxRecord     = 8 << 20
	segmentBytes  = 256 << 20

	segmentMagic = "BROODLOG"
	frameMagic   = "BRFR"

	flagZstd     = 1
	kindKeyframe = 0
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func crc(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// badFrame is the reason why bytes are not a valid frame. At the end of the log this is an incomplete tail; elsewhere
// it becomes a CorruptError.
type badFrame string

// cutHeader is the badFrame for a segment that is shorter than its header.
const cutHeader = badFrame("the segment header is cut off")

func (b badFrame) Error() string { return string(b) }

// header is a frame header without its magic and checksum.
type header struct {
	flags, count  uint16
	kinds         uint32
	stored, plain uint32
	payload       uint32 // CRC of the stored payload
	first         uint64
}

// size returns the number of bytes of the frame, including its header.
func (h header) size() int64 { return frameHeader + int64(h.stored) }

func (h header) keyframe() bool { return h.kinds == 1<<kindKeyframe }

// put writes the header to the first frameHeader bytes of b.
func (h header) put(b []byte) {
	copy(b, frameMagic)
	binary.LittleEndian.PutUint16(b[4:], h.flags)
	binary.LittleEndian.PutUint16(b[6:], h.count)
	binary.LittleEndian.PutUint32(b[8:], h.kinds)
	binary.LittleEndian.PutUint32(b[12:], h.stored)
	binary.LittleEndian.PutUint32(b[16:], h.plain)
	binary.LittleEndian.PutUint32(b[20:], h.payload)
	binary.LittleEndian.PutUint64(b[24:], h.first)
	binary.LittleEndian.PutUint32(b[32:], crc(b[:32]))
}

// parseHeader decodes a frame header and validates it as far as possible without the payload. Its error is a badFrame.
func parseHeader(b []byte) (header, error) {
	if len(b) < frameHeader {
		return header{}, badFrame("the frame header is cut off")
	}
	if string(b[:4]) != frameMagic {
		return header{}, badFrame("no frame begins here")
	}
	if crc(b[:32]) != binary.LittleEndian.Uint32(b[32:]) {
		return header{}, badFrame("the checksum of the frame header differs")
	}
	h := header{
		flags:   binary.LittleEndian.Uint16(b[4:]),
		count:   binary.LittleEndian.Uint16(b[6:]),
		kinds:   binary.LittleEndian.Uint32(b[8:]),
		stored:  binary.LittleEndian.Uint32(b[12:]),
		plain:   binary.LittleEndian.Uint32(b[16:]),
		payload: binary.LittleEndian.Uint32(b[20:]),
		first:   binary.LittleEndian.Uint64(b[24:]),
	}
	switch {
	case h.flags&^flagZstd != 0:
		return h, badFrame(fmt.Sprintf("unknown flags %#x", h.flags))
	case h.stored > maxPayload || h.plain > maxPayload:
		return h, badFrame(fmt.Sprintf("a payload of %d bytes (%d plain) is over the limit of %d",
			h.stored, h.plain, maxPayload))
	case h.flags&flagZstd == 0 && h.stored != h.plain:
		return h, badFrame("a plain payload with two lengths")
	case h.keyframe() && h.count != 0:
		return h, badFrame("a keyframe that counts records")
	case !h.keyframe() && (h.kinds&(1<<kindKeyframe) != 0 || h.count == 0 || h.count > frameRecords):
		return h, badFrame(fmt.Sprintf("a frame of %d records of kinds %#x", h.count, h.kinds))
	case h.first > 1<<62:
		return h, badFrame("a record number out of range")
	}
	return h, nil
}

// putSegmentHeader returns the encoded header of a segment. first is the number of its first record; next is the number
// of the segment after it, 0 for number+1.
func putSegmentHeader(number uint32, first uint64, next uint32) []byte {
	b := make([]byte, segmentHeader)
	copy(b, segmentMagic)
	binary.LittleEndian.PutUint16(b[8:], version)
	binary.LittleEndian.PutUint32(b[12:], number)
	binary.LittleEndian.PutUint64(b[16:], first)
	binary.LittleEndian.PutUint32(b[24:], next)
	binary.LittleEndian.PutUint32(b[28:], crc(b[:28]))
	return b
}

// parseSegmentHeader decodes the header of a segment and returns the number of its first record and that of the next
// segment. Its error is a badFrame or a *VersionError.
func parseSegmentHeader(b []byte, number uint32) (first uint64, next uint32, err error) {
	switch {
	case len(b) < segmentHeader:
		return 0, 0, cutHeader
	case string(b[:8]) != segmentMagic:
		return 0, 0, badFrame("it is not a segment of a log")
	case crc(b[:28]) != binary.LittleEndian.Uint32(b[28:]):
		return 0, 0, badFrame("the checksum of the segment header differs")
	}
	if v := binary.LittleEndian.Uint16(b[8:]); v != version {
		return 0, 0, &VersionError{Found: int(v), Known: version}
	}
	if n := binary.LittleEndian.Uint32(b[12:]); n != number {
		return 0, 0, badFrame(fmt.Sprintf("it calls itself segment %d", n))
	}
	next = binary.LittleEndian.Uint32(b[24:])
	shortened := number == 1 && next > 1
	if next != 0 && !shortened {
		return 0, 0, badFrame(fmt.Sprintf("segment %d cannot follow it", next))
	}
	first = binary.LittleEndian.Uint64(b[16:])
	if first > 1<<62 || number == 1 && first != 0 && !shortened {
		return 0, 0, badFrame(fmt.Sprintf("it cannot begin with record %d", first))
	}
	return first, max(next, number+1), nil
}
