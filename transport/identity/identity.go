// Package identity handles authentication: a process's key, the TLS configurations with which both sides verify keys,
// join URLs, and the Gate that admits by key or token. docs/security.md states the guarantees. It imports
// transport/wire only.
//
//	key, err := identity.New()                       // or identity.Load("worker.key")
//	gate := identity.NewGate(time.Now)
//	token, err := gate.Issue(wire.Worker, 2, 0)      // two workers, within an hour
//	url := identity.Join{Address: "host:4433", Token: token, Server: key.Node()}.String()
//	...
//	err = gate.Admit(node, wire.Worker, token)       // nil, or a wire.Refused with the reason
package identity

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"brood/transport/wire"
)

// Key is a process's ed25519 key and its self-signed certificate.
type Key struct {
	private ed25519.PrivateKey
	node    wire.NodeID
	cert    tls.Certificate
}

// New creates a key that is not stored in a file.
func New() (*Key, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return from(private)
}

const pemType = "BROOD ED25519 SEED"

// Load reads the key from a file, which only its owner may access, or a pipe. It creates a missing file with a new key.
func Load(path string) (*Key, error) {
	k, err := read(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	if k, err = New(); err != nil {
		return nil, err
	}
	if err := k.Save(path); errors.Is(err, fs.ErrExist) {
		return read(path) // another process created it first
	} else if err != nil {
		return nil, err
	}
	return k, nil
}

func read(path string) (*Key, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read the key: %w: name another file", err)
	}
	if info.Mode()&(fs.ModeDir|fs.ModeDevice) != 0 {
		return nil, fmt.Errorf("%s is not a file that could hold a key: name another one", path)
	}
	if m := info.Mode().Perm(); m&0o077 != 0 && runtime.GOOS != "windows" { // file modes have no meaning on Windows
		return nil, fmt.Errorf("the key %s may be read by others (mode %04o): chmod 600 %s, or remove it if others had "+
			"access", path, m, path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the key: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != pemType || len(block.Bytes) != ed25519.SeedSize {
		return nil, fmt.Errorf("%s holds no key of brood: name another file, or remove it to have a new key made", path)
	}
	return from(ed25519.NewKeyFromSeed(block.Bytes))
}

// Save writes the key to a new file atomically. It returns fs.ErrExist if the file exists.
func (k *Key) Save(path string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("write the key: %w", err)
	}
	tmp, err := os.CreateTemp(dir, ".key-*") // created with mode 0600
	if err != nil {
		return fmt.Errorf("write the key: %w", err)
	}
	defer os.Remove(tmp.Name())
	err = pem.Encode(tmp, &pem.Block{Type: pemType, Bytes: k.private.Seed()})
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return fmt.Errorf("write the key: %w", err)
	}
	if err := os.Link(tmp.Name(), path); errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("write the key: %w", err)
	} else if err != nil { // the file system has no hard links
		if err := os.Rename(tmp.Name(), path); err != nil {
			return fmt.Errorf("write the key: %w", err)
		}
	}
	return nil
}

func from(private ed25519.PrivateKey) (*Key, error) {
	public := private.Public().(ed25519.PublicKey)
	// The dates are not checked: a worker whose clock is wrong must still connect.
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "brood"},
		NotBefore: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	return &Key{private: private, node: NodeOf(public),
		cert: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}}, nil
}

// Node returns the node id of the key.
func (k *Key) Node() wire.NodeID { return k.node }

// Public returns the public key.
func (k *Key) Public() [ed25519.PublicKeySize]byte {
	return [ed25519.PublicKeySize]byte(k.private.Public().(ed25519.PublicKey))
}

// Sign returns the signature of a statement, which must begin so that no other kind of statement equals it.
func (k *Key) Sign(statement []byte) [ed25519.SignatureSize]byte {
	return [ed25519.SignatureSize]byte(ed25519.Sign(k.private, statement))
}

// NodeOf returns the node id of a public key.
func NodeOf(public ed25519.PublicKey) wire.NodeID { return sha256.Sum256(public) }

// ResetKey returns a secret derived from the key. QUIC's stateless resets are computed from it, so peers detect a
// restarted process at once.
func (k *Key) ResetKey() [32]byte {
	h := hmac.New(sha256.New, k.private.Seed())
	h.Write([]byte("brood quic stateless reset"))
	return [32]byte(h.Sum(nil))
}
