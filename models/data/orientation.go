package data

import (
	"bytes"
	"encoding/binary"
	"io"
)

// EXIF orientations (CIPA DC-008, tag 0x0112): how a stored picture is rotated or mirrored to be upright.
const (
	upright     = 1 // stored upright
	lastTurn    = 8
	firstOnSide = 5 // from this value on, width and height are exchanged
)

// maxEXIF limits the bytes of an EXIF block that are read. A JPEG segment cannot be longer.
const maxEXIF = 1 << 16

// maxMarkers limits the number of segments or chunks skipped in search of the EXIF block.
const maxMarkers = 1 << 16

// orientation returns the EXIF orientation of a JPEG, from its first APP1 segment of that kind, or of a PNG, from its
// eXIf chunk. It is upright where the file has none or its block is damaged.
func orientation(r io.ReadSeeker, isPNG bool) int {
	find := jpegEXIF
	if isPNG {
		find = pngEXIF
	}
	return tiffOrientation(find(r))
}

// jpegEXIF returns the TIFF bytes of the EXIF segment; nil if there is none before the scan data.
func jpegEXIF(r io.ReadSeeker) []byte {
	const (
		app1 = 0xe1
		sos  = 0xda
		eoi  = 0xd9
	)
	prefix := []byte("Exif\x00\x00")
	var b [4]byte
	if _, err := io.ReadFull(r, b[:2]); err != nil || b[0] != 0xff || b[1] != 0xd8 {
		return nil
	}
	for range maxMarkers {
		if _, err := io.ReadFull(r, b[:2]); err != nil || b[0] != 0xff {
			return nil
		}
		for filled := 0; b[1] == 0xff; filled++ { // a marker may follow any number of fill bytes
			if _, err := io.ReadFull(r, b[1:2]); err != nil || filled == maxEXIF {
				return nil
			}
		}
		if b[1] == sos || b[1] == eoi {
			return nil
		}
		if b[1] == 0x01 || b[1] >= 0xd0 && b[1] <= 0xd7 { // markers without a segment
			continue
		}
		if _, err := io.ReadFull(r, b[2:]); err != nil {
			return nil
		}
		n := int64(binary.BigEndian.Uint16(b[2:])) - 2
		if n < 0 {
			return nil
		}
		if b[1] == app1 && n >= int64(len(prefix)) {
			body := make([]byte, n)
			if _, err := io.ReadFull(r, body); err != nil {
				return nil
			}
			if tiff, ok := bytes.CutPrefix(body, prefix); ok {
				return tiff
			}
			continue
		}
		if _, err := r.Seek(n, io.SeekCurrent); err != nil {
			return nil
		}
	}
	return nil
}

// pngEXIF returns the bytes of the eXIf chunk, which may follow the pixels; nil if there is none.
func pngEXIF(r io.ReadSeeker) []byte {
	if _, err := r.Seek(int64(len(pngMagic)), io.SeekCurrent); err != nil {
		return nil
	}
	for range maxMarkers {
		var b [8]byte
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return nil
		}
		n := int64(binary.BigEndian.Uint32(b[:]))
		switch string(b[4:]) {
		case "eXIf":
			tiff, err := io.ReadAll(io.LimitReader(r, min(n, maxEXIF)))
			if err != nil {
				return nil
			}
			return tiff
		case "IEND":
			return nil
		}
		if _, err := r.Seek(n+4, io.SeekCurrent); err != nil { // and the checksum
			return nil
		}
	}
	return nil
}

// tiffOrientation returns the orientation in the first directory of a TIFF block, upright where it has no valid one.
func tiffOrientation(b []byte) int {
	const (
		tag   = 0x0112
		short = 3
		entry = 12
	)
	if len(b) < 8 {
		return upright
	}
	var order binary.ByteOrder
	switch string(b[:4]) {
	case "II*\x00":
		order = binary.LittleEndian
	case "MM\x00*":
		order = binary.BigEndian
	default:
		return upright
	}
	at := uint64(order.Uint32(b[4:]))
	if at+2 > uint64(len(b)) {
		return upright
	}
	entries := int(order.Uint16(b[at:]))
	b = b[at+2:]
	for ; entries > 0 && len(b) >= entry; entries, b = entries-1, b[entry:] {
		if order.Uint16(b) != tag {
			continue
		}
		v := int(order.Uint16(b[8:]))
		if order.Uint16(b[2:]) != short || order.Uint32(b[4:]) != 1 || v < upright || v > lastTurn {
			return upright
		}
		return v
	}
	return upright
}

// turn writes a plane of w x h stored pixels upright to dst. For orientations from firstOnSide on, dst is h x w.
func turn(dst, stored []byte, w, h, orientation int) {
	wide := w
	if orientation >= firstOnSide {
		wide = h
	}
	for i := range dst {
		x, y := i%wide, i/wide // upright position of the pixel
		switch orientation {
		case 2:
			x = w - 1 - x
		case 3:
			x, y = w-1-x, h-1-y
		case 4:
			y = h - 1 - y
		case 5:
			x, y = y, x
		case 6:
			x, y = y, h-1-x
		case 7:
			x, y = w-1-y, h-1-x
		case 8:
			x, y = w-1-y, x
		}
		dst[i] = stored[y*w+x]
	}
}
