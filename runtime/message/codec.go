package message

import (
	"fmt"
	"reflect"
	"time"

	"github.com/fxamacker/cbor/v2"

	"brood/runtime/event"
)

// Messages of a worker in another process, in addition to orders and reports.
type (
	// Setup is the first message to a worker. It contains the configuration from which the worker builds the job.
	Setup struct {
		Config  event.Config `cbor:"0,keyasint"`
		Members int          `cbor:"1,keyasint"`
		// the committed state that the run continues from, if its workers still hold it
		Committed *Committed `cbor:"2,keyasint,omitempty"`
	}
	// Get requests a piece of a file of the session from the coordinator: a checkpoint, or the initial parameters.
	Get struct {
		Path string `cbor:"0,keyasint"`
		From int64  `cbor:"1,keyasint,omitempty"`
	}
	// Piece is a part of a file, at most MaxPiece bytes: the answer to a Get, or a part of a checkpoint for the
	// coordinator.
	Piece struct {
		Path  string `cbor:"0,keyasint"`
		From  int64  `cbor:"1,keyasint,omitempty"`
		Total int64  `cbor:"2,keyasint,omitempty"`
		Data  []byte `cbor:"3,keyasint,omitempty"`
		Err   string `cbor:"4,keyasint,omitempty"`
	}
	// Stored reports that a piece is on disk; Err is set if it could not be written.
	Stored struct {
		Path string `cbor:"0,keyasint"`
		From int64  `cbor:"1,keyasint,omitempty"`
		Err  string `cbor:"2,keyasint,omitempty"`
	}
)

// Messages that do not affect the results of the run.
type (
	// Leaving reports that a worker wants to leave: its members move to the others, then a Stop releases it.
	Leaving struct{ Worker int }
	// Telemetry holds measurements of the links and the machine of a worker, about once a second, and its current
	// activity. Counters start at 0 with its process.
	Telemetry struct {
		Worker  int                       `cbor:"0,keyasint"`
		Links   []LinkCount               `cbor:"1,keyasint,omitempty"`
		Machine map[event.Measure]float64 `cbor:"2,keyasint,omitempty"` // see [event.CheckReport]
		Doing   *Doing                    `cbor:"3,keyasint,omitempty"` // nil: it waits for an order
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
	// LinkCount holds the counters of the link from the reporting worker to another one.
	LinkCount struct {
		To       int           `cbor:"0,keyasint"`
		Sent     int64         `cbor:"1,keyasint,omitempty"` // bytes of packets
		Received int64         `cbor:"2,keyasint,omitempty"`
		RTT      time.Duration `cbor:"3,keyasint,omitempty"` // of the last heartbeat
		Lost     float64       `cbor:"4,keyasint,omitempty"` // share of packets
		Relayed  bool          `cbor:"5,keyasint,omitempty"` // through the coordinator
	}
	// Shape slows down the links from a worker to others.
	Shape struct{ event.Link }
)

// MaxPiece bounds the bytes of a Piece.
const MaxPiece = 1 << 20

// Kinds of messages on the wire; append only. Kinds below 16 belong to the transport. Workers may only send kinds from
// kindReady on.
const (
	kindGrant uint16 = iota + 16
	kindAbort
	kindPlan
	kindSave
	kindStop
	kindSetup
	kindStored
	kindShape
	kindEvict
	kindAudit
)

const (
	kindReady uint16 = iota + 32
	kindDone
	kindFailed
	kindSaved
	kindGet
	kindPiece // the coordinator sends it too
	kindLeaving
	kindTelemetry
	kindAudited
)

// FromWorker reports whether a worker may send this kind.
func FromWorker(kind uint16) bool { return kind >= kindReady }

// encoding and decoding use core deterministic CBOR, with bounds and without items of indefinite length, so that all
// machines encode a message to the same bytes.
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

// types has the type of the messages of each kind.
var types = map[uint16]reflect.Type{
	kindGrant:     reflect.TypeFor[Grant](),
	kindAbort:     reflect.TypeFor[Abort](),
	kindPlan:      reflect.TypeFor[Plan](),
	kindSave:      reflect.TypeFor[Save](),
	kindStop:      reflect.TypeFor[Stop](),
	kindSetup:     reflect.TypeFor[Setup](),
	kindStored:    reflect.TypeFor[Stored](),
	kindShape:     reflect.TypeFor[Shape](),
	kindEvict:     reflect.TypeFor[Evict](),
	kindAudit:     reflect.TypeFor[Audit](),
	kindReady:     reflect.TypeFor[Ready](),
	kindDone:      reflect.TypeFor[Done](),
	kindFailed:    reflect.TypeFor[Failed](),
	kindSaved:     reflect.TypeFor[Saved](),
	kindGet:       reflect.TypeFor[Get](),
	kindPiece:     reflect.TypeFor[Piece](),
	kindLeaving:   reflect.TypeFor[Leaving](),
	kindTelemetry: reflect.TypeFor[Telemetry](),
	kindAudited:   reflect.TypeFor[Audited](),
}

var kinds = func() map[reflect.Type]uint16 {
	out := map[reflect.Type]uint16{}
	for kind, t := range types {
		out[t] = kind
	}
	return out
}()

// Encode returns the kind and the body of a message.
func Encode(m any) (kind uint16, body []byte, err error) {
	kind, ok := kinds[reflect.TypeOf(m)]
	if !ok {
		return 0, nil, fmt.Errorf("encode message %T: it has no kind on the wire", m)
	}
	body, err = encoding.Marshal(m)
	return kind, body, err
}

// Decode is the inverse of Encode, except that it removes control characters from texts.
func Decode(kind uint16, body []byte) (any, error) {
	if err := validateSize(kind, body); err != nil {
		return nil, err
	}
	t, ok := types[kind]
	if !ok {
		return nil, fmt.Errorf("unknown message kind %d: the other side runs another version of brood", kind)
	}
	m := reflect.New(t)
	if err := decoding.Unmarshal(body, m.Interface()); err != nil {
		return nil, fmt.Errorf("message %s: %w", t, err)
	}
	return cleaned(m.Elem().Interface()), nil
}
