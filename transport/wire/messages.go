package wire

import (
	"fmt"
	"net"
	"slices"

	"github.com/fxamacker/cbor/v2"
)

// Body is the content of a control frame: one of the types below.
type Body interface{ kind() Kind }

type (
	// Hello begins a control connection.
	Hello struct {
		Version  uint8             `cbor:"1,keyasint"` // Marshal sets it
		Run      RunID             `cbor:"2,keyasint,omitzero"`
		Role     Role              `cbor:"3,keyasint"`
		Name     string            `cbor:"4,keyasint,omitempty"`
		Token    string            `cbor:"5,keyasint,omitempty"`
		Node     NodeID            `cbor:"6,keyasint"`
		Listen   []string          `cbor:"7,keyasint,omitempty"`
		Software string            `cbor:"8,keyasint,omitempty"`
		Kernels  string            `cbor:"9,keyasint,omitempty"`
		Data     map[string]string `cbor:"10,keyasint,omitempty"` // digests by name
		Device   string            `cbor:"11,keyasint,omitempty"` // the compute device and its memory; "" is the CPU
		Worker   *uint32           `cbor:"12,keyasint,omitempty"` // index that it had, under which it holds rows of Run
	}
	// Welcome accepts a Hello.
	Welcome struct {
		Version  uint8  `cbor:"1,keyasint"`
		Run      RunID  `cbor:"2,keyasint,omitzero"`
		Worker   uint32 `cbor:"3,keyasint,omitempty"` // the index given to a worker
		Name     string `cbor:"4,keyasint,omitempty"`
		Software string `cbor:"5,keyasint,omitempty"`
		Series   bool   `cbor:"6,keyasint,omitempty"` // more runs may follow: a worker dials again after this one
	}
	// Refused answers a Hello or an Open. It is an error.
	Refused struct {
		Code   string `cbor:"1,keyasint"`
		Reason string `cbor:"2,keyasint"`
		Ours   uint8  `cbor:"3,keyasint"` // wire version of the refuser
		Theirs uint8  `cbor:"4,keyasint,omitempty"`
		Retry  bool   `cbor:"5,keyasint,omitempty"` // the same request may succeed later
	}
	// Heartbeat measures the round trip: an answer repeats the time of its request.
	Heartbeat struct {
		Nanos  int64  `cbor:"1,keyasint"` // clock of the requesting side
		Answer bool   `cbor:"2,keyasint"`
		Pad    []byte `cbor:"3,keyasint"`
	}
	// Leave announces the regular end of a connection.
	Leave struct {
		Reason string `cbor:"1,keyasint,omitempty"`
	}
	// Message carries a message of the run. Kinds from FirstKind on are defined by the run.
	Message struct {
		Kind uint16 `cbor:"1,keyasint"`
		Body []byte `cbor:"2,keyasint,omitempty"`
	}
	// Open begins a connection of a pair of workers.
	Open struct {
		Version     uint8         `cbor:"1,keyasint"`
		Run         RunID         `cbor:"2,keyasint,omitzero"`
		From        uint32        `cbor:"3,keyasint"`
		To          uint32        `cbor:"4,keyasint"`
		Association AssociationID `cbor:"5,keyasint"`
		Lane        uint8         `cbor:"6,keyasint,omitempty"`
		Cut         uint64        `cbor:"7,keyasint,omitempty"` // frames of epochs below it may be lost
	}
	// Opened accepts an Open.
	Opened struct {
		Version uint8  `cbor:"1,keyasint"`
		Cut     uint64 `cbor:"2,keyasint,omitempty"`
	}
	// Lanes asks the dialler of a pair to have this many lanes.
	Lanes struct {
		Want uint8 `cbor:"1,keyasint"`
	}
)

func (Hello) kind() Kind     { return KindHello }
func (Welcome) kind() Kind   { return KindWelcome }
func (Refused) kind() Kind   { return KindRefused }
func (Heartbeat) kind() Kind { return KindHeartbeat }
func (Leave) kind() Kind     { return KindLeave }
func (Message) kind() Kind   { return KindMessage }
func (Open) kind() Kind      { return KindOpen }
func (Opened) kind() Kind    { return KindOpened }
func (Lanes) kind() Kind     { return KindLanes }

// HeartbeatSize is the payload size of every heartbeat in bytes.
const HeartbeatSize = 64

// MaxLanes is the largest number of lanes of a pair.
const MaxLanes = 8

// FirstKind is the first kind of Message that the run defines.
const FirstKind = 16

// Codes of Refused.
const (
	CodeVersion      = "version"
	CodeFormat       = "format"
	CodeKey          = "key"
	CodeTokenMissing = "token-missing"
	CodeTokenUnknown = "token-unknown"
	CodeTokenExpired = "token-expired"
	CodeTokenUsed    = "token-used"
	CodeTokenSpent   = "token-spent"
	CodeRole         = "role"
	CodeRevoked      = "revoked"
	CodeRun          = "run"
	CodeData         = "data"
	CodeRoster       = "roster"
	CodeBusy         = "busy"
	CodeWait         = "wait" // no run has a place for this worker now; it retries until one does
	CodeOver         = "over" // no run is left
	CodeRefused      = "refused"
)

func (r Refused) Error() string {
	if r.Code == CodeVersion {
		return fmt.Sprintf("refused: %s (the peer speaks wire version %d, this program %d)", r.Reason, r.Ours, Version)
	}
	return "refused: " + r.Reason
}

// RefuseVersion returns the answer to a peer of another version.
func RefuseVersion(theirs uint8) Refused {
	return Refused{
		Code:   CodeVersion,
		Reason: (&VersionError{Ours: Version, Theirs: theirs}).Error(),
		Ours:   Version,
		Theirs: theirs,
	}
}

// CBOR modes; both are safe for concurrent use.
var enc, dec = modes()

func modes() (cbor.EncMode, cbor.DecMode) {
	opts := cbor.CoreDetEncOptions()
	enc, err := opts.EncMode()
	if err != nil {
		panic(err) // constant options
	}
	dec, err := cbor.DecOptions{
		DupMapKey:        cbor.DupMapKeyEnforcedAPF,
		IndefLength:      cbor.IndefLengthForbidden,
		TagsMd:           cbor.TagsForbidden,
		MaxNestedLevels:  8,
		MaxArrayElements: 1 << 16,
		MaxMapPairs:      256,
	}.DecMode()
	if err != nil {
		panic(err) // constant options
	}
	return enc, dec
}

// Marshal returns the complete frame of a message. It sets the kind and the wire version.
func Marshal(h Header, m Body) ([]byte, error) {
	switch x := m.(type) {
	case Hello:
		x.Version = Version
		m = x
	case Welcome:
		x.Version = Version
		m = x
	case Refused:
		x.Ours = Version
		m = x
	case Open:
		x.Version = Version
		m = x
	case Opened:
		x.Version = Version
		m = x
	case Heartbeat:
		x.Pad = []byte{}
		bare, err := enc.Marshal(x)
		if err != nil {
			return nil, fmt.Errorf("encode a heartbeat: %w", err)
		}
		x.Pad = make([]byte, HeartbeatSize-len(bare)-1) // 24 bytes or more need a longer length prefix
		m = x
	}
	payload, err := enc.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode a message of kind %d: %w", m.kind(), err)
	}
	h.Kind = m.kind()
	frame, err := h.Append(make([]byte, 0, HeaderSize+len(payload)), payload)
	if err != nil {
		return nil, fmt.Errorf("encode a message of kind %d: %w", m.kind(), err)
	}
	return append(frame, payload...), nil
}

// Unmarshal decodes the payload of a control frame, checks it and cleans its texts.
func Unmarshal(h Header, payload []byte) (Body, error) {
	switch h.Kind {
	case KindHello:
		return decode(payload, func(m *Hello) error {
			if m.Role < Worker || m.Role > Operator {
				return malformed("a Hello of an unknown role, %d", m.Role)
			}
			if len(m.Listen) > 16 {
				return malformed("a Hello with %d addresses", len(m.Listen))
			}
			m.Name, m.Listen = CleanName(m.Name), cleanAll(m.Listen)
			m.Software, m.Kernels, m.Device = CleanText(m.Software), CleanText(m.Kernels), CleanText(m.Device)
			data := make(map[string]string, len(m.Data))
			for k, v := range m.Data {
				data[CleanName(k)] = CleanText(v)
			}
			if m.Data != nil {
				m.Data = data
			}
			return checkVersion(m.Version)
		})
	case KindWelcome:
		return decode(payload, func(m *Welcome) error {
			m.Name, m.Software = CleanName(m.Name), CleanText(m.Software)
			return checkVersion(m.Version)
		})
	case KindRefused:
		return decode(payload, func(m *Refused) error {
			m.Code, m.Reason = CleanName(m.Code), CleanText(m.Reason)
			return nil
		})
	case KindHeartbeat:
		return decode(payload, func(*Heartbeat) error { return nil })
	case KindLeave:
		return decode(payload, func(m *Leave) error {
			m.Reason = CleanText(m.Reason)
			return nil
		})
	case KindMessage:
		return decode(payload, func(m *Message) error {
			if len(m.Body) > MaxBody {
				return malformed("a body of %d bytes", len(m.Body))
			}
			return nil
		})
	case KindOpen:
		return decode(payload, func(m *Open) error {
			if m.Lane > MaxLanes {
				return malformed("lane %d of %d", m.Lane, MaxLanes)
			}
			if m.From == m.To || m.From == NoWorker || m.To == NoWorker {
				return malformed("a pair of %d and %d", m.From, m.To)
			}
			if m.Cut > 1<<32 {
				return malformed("a cut at epoch %d", m.Cut)
			}
			return checkVersion(m.Version)
		})
	case KindOpened:
		return decode(payload, func(m *Opened) error {
			if m.Cut > 1<<32 {
				return malformed("a cut at epoch %d", m.Cut)
			}
			return checkVersion(m.Version)
		})
	case KindLanes:
		return decode(payload, func(m *Lanes) error {
			if m.Want > MaxLanes {
				return malformed("%d lanes", m.Want)
			}
			return nil
		})
	}
	return nil, malformed("kind %d is no message", h.Kind)
}

func decode[M Body](payload []byte, check func(*M) error) (Body, error) {
	var m M
	if err := dec.Unmarshal(payload, &m); err != nil {
		return nil, malformed("kind %d: %s", m.kind(), CleanText(err.Error()))
	}
	if err := check(&m); err != nil {
		return nil, err
	}
	return m, nil
}

func checkVersion(version uint8) error {
	if version != Version {
		return &VersionError{Ours: Version, Theirs: version}
	}
	return nil
}

// Roster lists the node and addresses of each worker.
type Roster []PeerAddress

// PeerAddress is the index of a worker in the fleet, the hash of its key, its addresses and its name.
type PeerAddress struct {
	Index     uint32   `cbor:"1,keyasint"`
	Node      NodeID   `cbor:"2,keyasint"`
	Addresses []string `cbor:"3,keyasint,omitempty"` // host:port, tried in order
	Name      string   `cbor:"4,keyasint,omitempty"`
}

// KindRoster is the Message kind of a roster.
const KindRoster uint16 = 1

type rosterBody struct {
	Peers []PeerAddress `cbor:"1,keyasint"`
}

// Message encodes the roster as a message of the run, so that it arrives in order with the others.
func (r Roster) Message() (Message, error) {
	b, err := enc.Marshal(rosterBody{r})
	if err != nil {
		return Message{}, fmt.Errorf("encode the roster: %w", err)
	}
	if _, err := ParseRoster(b); err != nil {
		return Message{}, err
	}
	return Message{Kind: KindRoster, Body: b}, nil
}

// ParseRoster decodes the body of a message of KindRoster. It fails unless the indices are ascending and distinct.
func ParseRoster(body []byte) (Roster, error) {
	var b rosterBody
	if err := dec.Unmarshal(body, &b); err != nil {
		return nil, malformed("roster: %s", CleanText(err.Error()))
	}
	for i := range b.Peers {
		s := &b.Peers[i]
		if s.Index == NoWorker || i > 0 && s.Index <= b.Peers[i-1].Index {
			return nil, malformed("roster: index %d is out of order", s.Index)
		}
		if len(s.Addresses) > 16 {
			return nil, malformed("roster: %d addresses of worker %d", len(s.Addresses), s.Index)
		}
		for _, a := range s.Addresses {
			if _, _, err := net.SplitHostPort(a); err != nil {
				return nil, malformed("roster: worker %d: %q is no HOST:PORT", s.Index, CleanText(a))
			}
		}
		s.Name, s.Addresses = CleanName(s.Name), cleanAll(s.Addresses)
	}
	return b.Peers, nil
}

// Find returns the entry of an index.
func (r Roster) Find(index uint32) (PeerAddress, bool) {
	i, ok := slices.BinarySearchFunc(r, index, func(s PeerAddress, x uint32) int {
		return int(int64(s.Index) - int64(x))
	})
	if !ok {
		return PeerAddress{}, false
	}
	return r[i], true
}
