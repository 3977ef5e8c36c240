package wire

import (
	"bufio"
	"encoding/binary"
	"hash/crc32"
	"io"
)

// Sizes in bytes.
const (
	HeaderSize = 72      // of a header without the name of the operation
	MaxOp      = 64      // of the longest name of an operation
	MaxData    = 1 << 20 // of the largest payload of a data frame
	MaxBody    = 8 << 20 // of the largest body of a Message
)

// NoWorker is the sender of frames that belong to no pair.
const NoWorker = 1<<32 - 1

const magic = "BRWF"

// Kind identifies the content of a frame.
type Kind uint8

// Kinds of frames.
const (
	KindHello Kind = 1 + iota
	KindWelcome
	KindRefused
	KindHeartbeat
	KindLeave
	KindMessage
	KindOpen
	KindOpened
	KindLanes
	KindData
)

// limits holds the largest payload in bytes by kind.
var limits = [...]uint32{
	KindHello:     16 << 10,
	KindWelcome:   16 << 10,
	KindRefused:   4 << 10,
	KindHeartbeat: HeartbeatSize,
	KindLeave:     4 << 10,
	KindMessage:   MaxBody + 64,
	KindOpen:      1 << 10,
	KindOpened:    1 << 10,
	KindLanes:     64,
	KindData:      MaxData,
}

// Header describes a frame without its payload.
type Header struct {
	Kind   Kind
	Run    RunID
	Sender uint32
	Length uint32 // payload bytes; Append sets it

	// Set in data frames only.
	Op     string
	Epoch  uint32
	Order  uint64 // number of the message in its pair and direction
	Seq    uint64 // set by the program
	Total  uint64 // bytes of the message
	Offset uint64 // offset of the payload in the message

	crc, sum uint32 // as read; crc covers the payload too, sum the header and the name
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Append appends the header and the name of a frame with this payload, which must follow. It returns an error for a
// frame that a reader would refuse.
func (h Header) Append(dst, payload []byte) ([]byte, error) {
	h.Length = uint32(min(len(payload), 1<<32-1))
	if err := h.check(); err != nil {
		return dst, err
	}
	at := len(dst)
	dst = append(dst, magic...)
	dst = append(dst, Version, byte(h.Kind), 0, byte(len(h.Op)))
	le := binary.LittleEndian
	dst = le.AppendUint32(dst, h.Length)
	dst = le.AppendUint32(dst, 0)
	dst = append(dst, h.Run[:]...)
	dst = le.AppendUint32(dst, h.Epoch)
	dst = le.AppendUint32(dst, h.Sender)
	dst = le.AppendUint64(dst, h.Order)
	dst = le.AppendUint64(dst, h.Seq)
	dst = le.AppendUint64(dst, h.Total)
	dst = le.AppendUint64(dst, h.Offset)
	dst = append(dst, h.Op...)
	le.PutUint32(dst[at+12:], crc32.Update(headerSum(dst[at:]), castagnoli, payload))
	return dst, nil
}

// headerSum returns the CRC of a header and its name, without the field that holds the CRC.
func headerSum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:12], castagnoli), castagnoli, b[16:])
}

// Check returns an error if a message of n bytes cannot be sent with this header in frames of up to MaxData.
func (h Header) Check(n int) error {
	h.Length = uint32(min(n, MaxData))
	return h.check()
}

func (h Header) check() error {
	if h.Kind == 0 || int(h.Kind) >= len(limits) {
		return malformed("kind %d is unknown", h.Kind)
	}
	if h.Length > limits[h.Kind] {
		return malformed("a payload of %d bytes, where kind %d has %d at most", h.Length, h.Kind, limits[h.Kind])
	}
	if h.Kind == KindHeartbeat && h.Length != HeartbeatSize {
		return malformed("a heartbeat of %d bytes", h.Length)
	}
	if h.Kind != KindData {
		if h.Op != "" || h.Epoch != 0 || h.Order != 0 || h.Seq != 0 || h.Total != 0 || h.Offset != 0 {
			return malformed("kind %d with fields of data", h.Kind)
		}
		return nil
	}
	if len(h.Op) > MaxOp {
		return malformed("an operation's name of %d bytes", len(h.Op))
	}
	for _, c := range []byte(h.Op) {
		if c < ' ' || c > '~' {
			return malformed("an operation's name of other than printable ASCII")
		}
	}
	if n := uint64(h.Length); n > h.Total || h.Offset > h.Total-n || n == 0 && h.Total > 0 {
		return malformed("%d bytes at %d of a message of %d", h.Length, h.Offset, h.Total)
	}
	return nil
}

// Reader reads frames from a stream.
type Reader struct {
	r   *bufio.Reader
	buf [HeaderSize + MaxOp]byte
}

// NewReader returns a Reader of r.
func NewReader(r io.Reader) *Reader { return &Reader{r: bufio.NewReaderSize(r, 16<<10)} }

// Next reads a frame. The caller owns the payload.
func (r *Reader) Next() (Header, []byte, error) {
	h, err := r.Header()
	if err != nil {
		return h, nil, err
	}
	p, err := r.Payload(h, nil)
	return h, p, err
}

// Peek returns the kind of the next frame without consuming it. It does not check the rest of the frame.
func (r *Reader) Peek() (Kind, error) {
	b, err := r.r.Peek(6)
	if err != nil {
		return 0, err
	}
	return Kind(b[5]), nil
}

// Header reads a frame up to its payload. It returns io.EOF if the stream ended between frames.
func (r *Reader) Header() (h Header, err error) {
	b := r.buf[:HeaderSize]
	if _, err = io.ReadFull(r.r, b); err != nil {
		return h, err
	}
	le := binary.LittleEndian
	if string(b[:4]) != magic {
		return h, malformed("it begins with %x", b[:4])
	}
	if b[4] != Version {
		return h, &VersionError{Ours: Version, Theirs: b[4]}
	}
	if b[6] != 0 {
		return h, malformed("flags %#x", b[6])
	}
	if b[7] > MaxOp {
		return h, malformed("an operation's name of %d bytes", b[7])
	}
	b = r.buf[:HeaderSize+int(b[7])]
	if _, err = io.ReadFull(r.r, b[HeaderSize:]); err != nil {
		return h, cut(err)
	}
	h = Header{
		Kind:   Kind(b[5]),
		Run:    RunID(b[16:32]),
		Sender: le.Uint32(b[36:]),
		Length: le.Uint32(b[8:]),
		Op:     string(b[HeaderSize:]),
		Epoch:  le.Uint32(b[32:]),
		Order:  le.Uint64(b[40:]),
		Seq:    le.Uint64(b[48:]),
		Total:  le.Uint64(b[56:]),
		Offset: le.Uint64(b[64:]),
		crc:    le.Uint32(b[12:]),
		sum:    headerSum(b),
	}
	return h, h.check()
}

// firstPiece is the number of bytes that Payload allocates for a length before any payload has arrived.
const firstPiece = 64 << 10

// Payload reads the payload of a frame whose header was just read, and checks the CRC. It uses dst if its capacity
// suffices; otherwise it grows its own buffer as bytes arrive.
func (r *Reader) Payload(h Header, dst []byte) ([]byte, error) {
	n, sum := int(h.Length), h.sum
	p := dst[:0]
	for len(p) < n {
		if len(p) == cap(p) {
			p = append(make([]byte, 0, min(n, max(firstPiece, 2*len(p)))), p...)
		}
		piece := p[len(p):min(n, cap(p), len(p)+firstPiece)]
		if _, err := io.ReadFull(r.r, piece); err != nil {
			return nil, cut(err)
		}
		sum = crc32.Update(sum, castagnoli, piece) // while the piece is in the CPU cache
		p = p[:len(p)+len(piece)]
	}
	if sum != h.crc {
		return nil, malformed("its CRC is wrong")
	}
	return p, nil
}

// cut converts io.EOF within a frame into io.ErrUnexpectedEOF.
func cut(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
