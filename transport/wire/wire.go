// Package wire defines the bytes exchanged between processes: frames, handshake messages, and compact encodings of
// float32 values. docs/wire-format.md specifies them. The package does no I/O except through the io.Reader of a Reader,
// reads no clock and starts no goroutine. It imports no other package of brood.
//
//	frame, err := wire.Marshal(wire.Header{Run: run, Sender: wire.NoWorker}, wire.Leave{Reason: "done"})
//	...
//	header, payload, err := wire.NewReader(stream).Next()
//	body, err := wire.Unmarshal(header, payload)
//
// All decoded input comes from a peer: sizes are limited, values checked and texts cleaned.
package wire

import (
	"crypto/subtle"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"strings"
)

// Version is the version of the frames and messages.
const Version = 3

// RunID identifies a run; zero is none.
type RunID [16]byte

func (r RunID) String() string { return hex.EncodeToString(r[:]) }

// NodeID identifies a process: the SHA-256 of its public key.
type NodeID [32]byte

// AssociationID identifies an association of a pair.
type AssociationID [16]byte

// The ids are encoded as byte strings of exactly their length.

func (r RunID) MarshalBinary() ([]byte, error)         { return r[:], nil }
func (n NodeID) MarshalBinary() ([]byte, error)        { return n[:], nil }
func (s AssociationID) MarshalBinary() ([]byte, error) { return s[:], nil }

func (r *RunID) UnmarshalBinary(b []byte) error         { return exactly(r[:], b) }
func (n *NodeID) UnmarshalBinary(b []byte) error        { return exactly(n[:], b) }
func (s *AssociationID) UnmarshalBinary(b []byte) error { return exactly(s[:], b) }

func exactly(dst, src []byte) error {
	if len(src) != len(dst) {
		return malformed("an id of %d bytes, not %d", len(src), len(dst))
	}
	copy(dst, src)
	return nil
}

var base = base32.StdEncoding.WithPadding(base32.NoPadding)

// String returns the whole id as 52 letters and digits.
func (n NodeID) String() string { return strings.ToLower(base.EncodeToString(n[:])) }

// Short returns the first ten characters of the id, for display.
func (n NodeID) Short() string { return n.String()[:10] }

// Equal compares in constant time.
func (n NodeID) Equal(o NodeID) bool { return subtle.ConstantTimeCompare(n[:], o[:]) == 1 }

// ParseNodeID parses the result of String.
func ParseNodeID(s string) (NodeID, error) {
	b, err := base.DecodeString(strings.ToUpper(s))
	if err != nil || len(b) != len(NodeID{}) {
		return NodeID{}, fmt.Errorf("%q is not the hash of a key: it has 52 letters and digits; copy the whole join URL",
			CleanText(s))
	}
	return NodeID(b), nil
}

// Role determines what a peer may do.
type Role uint8

// Roles of peers that dial a coordinator.
const (
	Worker Role = 1 + iota
	Viewer
	Operator
)

func (r Role) String() string {
	switch r {
	case Worker:
		return "worker"
	case Viewer:
		return "viewer"
	case Operator:
		return "operator"
	}
	return fmt.Sprintf("role %d", uint8(r))
}

// VersionError reports a peer with another wire version.
type VersionError struct{ Ours, Theirs uint8 }

func (e *VersionError) Error() string {
	return fmt.Sprintf("the peer speaks wire version %d, this program speaks %d: run the same version of brood on both "+
		"sides", e.Theirs, e.Ours)
}

// FormatError reports a malformed frame or message, from a faulty or hostile peer.
type FormatError struct{ Reason string }

func (e *FormatError) Error() string { return "malformed frame: " + e.Reason }

func malformed(format string, args ...any) error {
	return &FormatError{fmt.Sprintf(format, args...)}
}
