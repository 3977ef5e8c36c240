package remote

import (
	"testing"

	"brood/runtime/event"
	"brood/runtime/message"
)

// TestSignatures: a saved file needs the signature of the worker's own key under its digest, its round and the state of
// the order.
func TestSignatures(t *testing.T) {
	key, other := newKey(t), newKey(t)
	order := message.Save{Epoch: 2, At: 7, Hash: "blake3:aa"}
	file := event.File{Path: "checkpoints/7/epoch-2-worker-1.safetensors", Digest: "blake3:bb", Bytes: 9}
	sign := func(order message.Save, file event.File) event.Signature {
		return event.Signature{Key: key.Public(), Sum: key.Sign(event.Statement(order.At, order.Epoch, order.Hash, file))}
	}
	if err := checkSignature(sign(order, file), key.Node(), order, file); err != nil {
		t.Error(err)
	}
	if checkSignature(sign(order, file), other.Node(), order, file) == nil {
		t.Error("another worker's signature")
	}
	if checkSignature(event.Signature{}, key.Node(), order, file) == nil {
		t.Error("no signature")
	}
	for name, s := range map[string]event.Signature{
		"round":  sign(message.Save{Epoch: 2, At: 8, Hash: "blake3:aa"}, file),
		"epoch":  sign(message.Save{Epoch: 3, At: 7, Hash: "blake3:aa"}, file),
		"state":  sign(message.Save{Epoch: 2, At: 7, Hash: "blake3:ab"}, file),
		"path":   sign(order, event.File{Path: "x", Digest: file.Digest, Bytes: 9}),
		"digest": sign(order, event.File{Path: file.Path, Digest: "blake3:bc", Bytes: 9}),
		"size":   sign(order, event.File{Path: file.Path, Digest: file.Digest, Bytes: 8}),
	} {
		if checkSignature(s, key.Node(), order, file) == nil {
			t.Errorf("a signature under another %s is accepted", name)
		}
	}
}
