// Package wire is what travels between processes: frames, the messages of a handshake, and shorter forms of float32
// values. docs/wire-format.md specifies it. The package does no I/O but through the Reader that it is given, keeps no
// clock and starts no goroutine. It imports nothing of ours.
//
//	frame, err := wire.Marshal(wire.Header{Run: run, Sender: wire.Nobody}, wire.Leave{Reason: "done"})
//	...
//	header, payload, err := wire.NewReader(stream).Next()
//	body, err := wire.Unmarshal(header, payload)
//
// Everything that is decoded comes from a peer: it is bounded, checked, and names are cleaned.
package wire

import (
	"crypto/subtle"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"strings"
)

// Version of the frames and messages.
const Version = 1

// RunID names a run; zero is none.
type RunID [16]byte

func (r RunID) String() string { return hex.EncodeToString(r[:]) }

// NodeID names a process: the SHA-256 of its public key.
type NodeID [32]byte

// AssociationID names one life of a pair.
type AssociationID [16]byte

// The ids are byte strings of exactly their length.

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

// String is the whole id in 52 letters and digits.
func (n NodeID) String() string { return strings.ToLower(base.EncodeToString(n[:])) }

// Short is enough of an id for people.
func (n NodeID) Short() string { return n.String()[:10] }

// Equal takes the same time whatever differs.
func (n NodeID) Equal(o NodeID) bool { return subtle.ConstantTimeCompare(n[:], o[:]) == 1 }

// ParseNodeID reads what String writes.
func ParseNodeID(s string) (NodeID, error) {
	b, err := base.DecodeString(strings.ToUpper(s))
	if err != nil || len(b) != len(NodeID{}) {
		return NodeID{}, fmt.Errorf("%q is not the hash of a key: it has 52 letters and digits; copy the whole join URL",
			CleanText(s))
	}
	return NodeID(b), nil
}

// Role is what a peer may do.
type Role uint8

// Roles of those who come to a coordinator.
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

// VersionError is a peer that speaks another version.
type VersionError struct{ Ours, Theirs uint8 }

func (e *VersionError) Error() string {
	return fmt.Sprintf("the peer speaks wire version %d, this program speaks %d: run the same version of brood on both sides", e.Theirs, e.Ours)
}

// FormatError is a frame or message that breaks the format: a broken or hostile peer.
type FormatError struct{ Reason string }

func (e *FormatError) Error() string { return "malformed frame: " + e.Reason }

func malformed(format string, args ...any) error {
	return &FormatError{fmt.Sprintf(format, args...)}
}
