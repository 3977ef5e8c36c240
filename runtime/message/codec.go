package message

import (
	"fmt"
	"time"

	"github.com/fxamacker/cbor/v2"

	"brood/runtime/event"
)

// More messages of a worker in a process of its own.
type (
	// Setup is the first message to a worker: what it needs to build the same job.
	Setup struct {
		Config  event.Config `cbor:"0,keyasint"`
		Members int          `cbor:"1,keyasint"`
	}
	// Get asks the coordinator for a piece of a file of the session: a checkpoint, or the initial parameters.
	Get struct {
		Path string `cbor:"0,keyasint"`
		From int64  `cbor:"1,keyasint,omitempty"`
	}
	// Piece is a part of a file, at most MaxPiece bytes. It answers a Get, or brings a checkpoint to the coordinator.
	Piece struct {
		Path  string `cbor:"0,keyasint"`
		From  int64  `cbor:"1,keyasint,omitempty"`
		Total int64  `cbor:"2,keyasint,omitempty"`
		Data  []byte `cbor:"3,keyasint,omitempty"`
		Err   string `cbor:"4,keyasint,omitempty"`
	}
	// Kept says that a piece is on disk, or why not.
	Kept struct {
		Path string `cbor:"0,keyasint"`
		From int64  `cbor:"1,keyasint,omitempty"`
		Err  string `cbor:"2,keyasint,omitempty"`
	}
)

// What is said beside the run's own business, and changes none of it.
type (
	// Leaving says that a worker wants to go: its members move to the others, and a Stop lets it go.
	Leaving struct{ Worker int }
	// Telemetry is what a worker measures of its links and of its machine, about once a second, and its current
	// activity. Counts run from the start of its process.
	Telemetry struct {
		Worker  int                       `cbor:"0,keyasint"`
		Links   []LinkCount               `cbor:"1,keyasint,omitempty"`
		Machine map[event.Measure]float64 `cbor:"2,keyasint,omitempty"` // see [event.Told]
		Doing   *Doing                    `cbor:"3,keyasint,omitempty"` // nil: it waits for an order, or is an older version
	}
	// Doing is the activity of a worker, as worker.Doing. It has no start time, since the clocks of machines differ.
	Doing struct {
		Stage   string        `cbor:"0,keyasint"`
		For     time.Duration `cbor:"1,keyasint,omitempty"` // since the start of the stage
		Round   uint64        `cbor:"2,keyasint,omitempty"`
		Done    int           `cbor:"3,keyasint,omitempty"`
		Of      int           `cbor:"4,keyasint,omitempty"`
		Members int           `cbor:"5,keyasint,omitempty"`
	}
	// LinkCount is one link, from the worker that says it to another.
	LinkCount struct {
		To       int           `cbor:"0,keyasint"`
		Sent     int64         `cbor:"1,keyasint,omitempty"` // bytes of packets
		Received int64         `cbor:"2,keyasint,omitempty"`
		RTT      time.Duration `cbor:"3,keyasint,omitempty"` // of the last heartbeat
		Lost     float64       `cbor:"4,keyasint,omitempty"` // share of packets
	}
	// Shape makes a worker slow down what it sends to others.
	Shape struct{ event.Link }
)

// MaxPiece bounds the bytes of a Piece.
const MaxPiece = 1 << 20

// Kinds on the wire; append only. Those below 16 are the transport's. A worker may send from kindReady on.
const (
	kindGrant uint16 = iota + 16
	kindAbort
	kindPlan
	kindSave
	kindStop
	kindSetup
	kindKept
	kindShape
	kindAway
)

const (
	kindReady uint16 = iota + 32
	kindDone
	kindFailed
	kindSaved
	kindGet
	kindPiece // also to a worker
	kindLeaving
	kindTelemetry
)

// FromWorker says whether a worker may send this kind.
func FromWorker(kind uint16) bool { return kind >= kindReady }

// coding is the same on all machines: core deterministic CBOR, nothing indefinite, bounded.
var (
	encoding = must(cbor.CoreDetEncOptions().EncMode())
	decoding = must(cbor.DecOptions{
		DupMapKey:        cbor.DupMapKeyEnforcedAPF,
		IndefLength:      cbor.IndefLengthForbidden,
		TagsMd:           cbor.TagsForbidden,
		UTF8:             cbor.UTF8DecodeInvalid,
		MaxNestedLevels:  16,
		MaxArrayElements: 1 << 21,
		MaxMapPairs:      1 << 16,
	}.DecMode())
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err) // constant options
	}
	return v
}

// Encode gives a message its kind and its body.
func Encode(m any) (kind uint16, body []byte, err error) {
	switch m.(type) {
	case Grant:
		kind = kindGrant
	case Abort:
		kind = kindAbort
	case Plan:
		kind = kindPlan
	case Save:
		kind = kindSave
	case Stop:
		kind = kindStop
	case Setup:
		kind = kindSetup
	case Kept:
		kind = kindKept
	case Shape:
		kind = kindShape
	case Away:
		kind = kindAway
	case Ready:
		kind = kindReady
	case Done:
		kind = kindDone
	case Failed:
		kind = kindFailed
	case Saved:
		kind = kindSaved
	case Get:
		kind = kindGet
	case Piece:
		kind = kindPiece
	case Leaving:
		kind = kindLeaving
	case Telemetry:
		kind = kindTelemetry
	default:
		return 0, nil, fmt.Errorf("message %T has no kind on the wire", m)
	}
	body, err = encoding.Marshal(m)
	return kind, body, err
}

// Decode is the inverse of Encode, but for control characters in sentences.
func Decode(kind uint16, body []byte) (any, error) {
	if err := admits(kind, body); err != nil {
		return nil, err
	}
	m, err := decodeKind(kind, body)
	return cleaned(m), err
}

func decodeKind(kind uint16, body []byte) (any, error) {
	switch kind {
	case kindGrant:
		return decode[Grant](body)
	case kindAbort:
		return decode[Abort](body)
	case kindPlan:
		return decode[Plan](body)
	case kindSave:
		return decode[Save](body)
	case kindStop:
		return decode[Stop](body)
	case kindSetup:
		return decode[Setup](body)
	case kindKept:
		return decode[Kept](body)
	case kindShape:
		return decode[Shape](body)
	case kindAway:
		return decode[Away](body)
	case kindReady:
		return decode[Ready](body)
	case kindDone:
		return decode[Done](body)
	case kindFailed:
		return decode[Failed](body)
	case kindSaved:
		return decode[Saved](body)
	case kindGet:
		return decode[Get](body)
	case kindPiece:
		return decode[Piece](body)
	case kindLeaving:
		return decode[Leaving](body)
	case kindTelemetry:
		return decode[Telemetry](body)
	}
	return nil, fmt.Errorf("message of kind %d is not known: the other side is another version of brood", kind)
}

func decode[T any](body []byte) (any, error) {
	var m T
	if err := decoding.Unmarshal(body, &m); err != nil {
		return nil, fmt.Errorf("message %T: %w", m, err)
	}
	return m, nil
}
