package event

import (
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
)

// Signature is a worker's signature under a file that it saved, by the ed25519 key of its process. The zero value is no
// signature: of a worker in the coordinator's process, or in an older log.
type Signature struct {
	Key [ed25519.PublicKeySize]byte `cbor:"0,keyasint"` // public
	Sum [ed25519.SignatureSize]byte `cbor:"1,keyasint"`
}

// Statement returns what a worker signs when it saves a file with its rows of a committed state, whose hash is hash.
func Statement(round uint64, epoch uint32, hash string, f File) []byte {
	return fmt.Appendf(nil, "brood checkpoint\nround %d\nepoch %d\nstate %s\nfile %s %s %d\n",
		round, epoch, hash, f.Path, f.Digest, f.Bytes)
}

// Signs reports whether the signature is valid for a statement.
func (s Signature) Signs(statement []byte) bool { return ed25519.Verify(s.Key[:], statement, s.Sum[:]) }

// Node returns the id of the process with this key.
func (s Signature) Node() [32]byte { return sha256.Sum256(s.Key[:]) }
