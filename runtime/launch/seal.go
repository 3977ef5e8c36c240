package launch

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
)

// MinSecret is the least length of a shared secret, in bytes, since an attacker can record sealed bytes and guess.
const MinSecret = 32

// Seal encrypts and authenticates text with AES-256-GCM and a random nonce. The key is HKDF-SHA256 of the secret. It
// fails if the secret is shorter than MinSecret.
func Seal(secret, text string) ([]byte, error) {
	a, err := newCipher(secret)
	if err != nil {
		return nil, err
	}
	return a.Seal(nil, nil, []byte(text), nil), nil
}

// Unseal decrypts the result of [Seal]. It fails if the secret differs or sealed was changed.
func Unseal(secret string, sealed []byte) (string, error) {
	a, err := newCipher(secret)
	if err != nil {
		return "", err
	}
	text, err := a.Open(nil, nil, sealed, nil)
	if err != nil {
		return "", errors.New("the answer is not encrypted with this secret: give all copies the same BROOD_SECRET")
	}
	return string(text), nil
}

func newCipher(secret string) (cipher.AEAD, error) {
	if len(secret) < MinSecret {
		return nil, fmt.Errorf("the shared secret has %d characters and needs %d or more: make one with "+
			"`openssl rand -hex 32`", len(secret), MinSecret)
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
