package host

import (
	"crypto/ed25519"
	"strings"
	"testing"

	"brood/runtime/event"
)

// TestSignatures: verify counts the valid signatures of a checkpoint and their keys, and fails at one that is not.
func TestSignatures(t *testing.T) {
	cp := event.Checkpoint{Round: 7, Epoch: 2, Hash: "blake3:aa", Files: []event.File{
		{Path: "a", Digest: "blake3:b0"}, {Path: "b", Digest: "blake3:b1"}, {Path: "c", Digest: "blake3:b2"}}}
	for i, f := range cp.Files {
		var s event.Signature
		if i != 1 { // that worker is in the coordinator's process
			key := ed25519.NewKeyFromSeed([]byte(strings.Repeat("k", ed25519.SeedSize)))
			copy(s.Key[:], key.Public().(ed25519.PublicKey))
			copy(s.Sum[:], ed25519.Sign(key, event.Statement(7, 2, "blake3:aa", f)))
		}
		cp.Signatures = append(cp.Signatures, s)
	}
	var out Verified
	if err := out.signatures(&cp); err != nil || out.Signed != 2 || len(out.Signers) != 1 {
		t.Errorf("%v, %+v", err, out)
	}
	cp.Hash = "blake3:ab"
	if err := out.signatures(&cp); err == nil ||
		!strings.Contains(err.Error(), "signature of a, of the checkpoint of round 7") {
		t.Errorf("another state: %v", err)
	}
	cp.Signatures = cp.Signatures[:2]
	if err := out.signatures(&cp); err == nil || !strings.Contains(err.Error(), "2 signatures for 3 files") {
		t.Errorf("fewer signatures: %v", err)
	}
	cp.Signatures = nil
	if err := out.signatures(&cp); err != nil || out.Signed != 2 {
		t.Errorf("no signatures: %v, %+v", err, out)
	}
}
