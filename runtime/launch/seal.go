package launch

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
)

// MinSecret is how many characters a shared secret has at least: whoever records a box may guess for as long as it
// likes.
const MinSecret = 32

// Seal hides text, a join URL, from all that do not have the secret, and keeps it from being changed: AES-256-GCM with
// a random nonce, under HKDF-SHA256 of the secret.
func Seal(secret, text string) ([]byte, error) {
	a, err := box(secret)
	if err != nil {
		return nil, err
	}
	return a.Seal(nil, nil, []byte(text), nil), nil
}

// Unseal is what was sealed.
func Unseal(secret string, sealed []byte) (string, error) {
	a, err := box(secret)
	if err != nil {
		return "", err
	}
	text, err := a.Open(nil, nil, sealed, nil)
	if err != nil {
		return "", errors.New("what answers there has another secret")
	}
	return string(text), nil
}

func box(secret string) (cipher.AEAD, error) {
	if len(secret) < MinSecret {
		return nil, fmt.Errorf("the shared secret has %d characters and needs %d or more: make one with `openssl rand -hex 32`", len(secret), MinSecret)
	}
	key, err := hkdf.Key(sha256.New, []byte(secret), nil, "brood rendezvous 1", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}
