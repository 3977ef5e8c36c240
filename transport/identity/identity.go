// Package identity says who a process is and what it may do: its key, the TLS configurations in which both sides show
// their keys, join URLs, and the Gate that admits by key or token. docs/security.md says what that promises. It imports
// transport/wire only.
//
//	key, err := identity.New()                       // or identity.Load("worker.key")
//	gate := identity.NewGate(time.Now)
//	token, err := gate.Issue(wire.Worker, 2, 0)      // two workers, within an hour
//	url := identity.Join{Address: "host:4433", Token: token, Server: key.Node()}.String()
//	...
//	err = gate.Admit(node, wire.Worker, token)       // a wire.Refused says why not
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

// Key is a process's ed25519 key and the certificate that shows it.
type Key struct {
	private ed25519.PrivateKey
	node    wire.NodeID
	cert    tls.Certificate
}

// New makes a key that lives as long as the process.
func New() (*Key, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return from(private)
}

const pemType = "BROOD ED25519 SEED"

// Load reads the key of a file that only its owner may read, and makes the file where there is none.
func Load(path string) (*Key, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return create(path)
	}
	if err != nil {
		return nil, fmt.Errorf("read the key: %w", err)
	}
	if m := info.Mode().Perm(); m&0o077 != 0 && runtime.GOOS != "windows" { // there, modes say nothing
		return nil, fmt.Errorf("the key %s may be read by others (mode %04o): chmod 600 %s, or remove it if others had access", path, m, path)
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

// create writes a new key: who loses a race reads what the winner wrote.
func create(path string) (*Key, error) {
	k, err := New()
	if err != nil {
		return nil, err
	}
	if err := k.Save(path); errors.Is(err, fs.ErrExist) {
		return Load(path)
	} else if err != nil {
		return nil, err
	}
	return k, nil
}

// Save writes the key to a new file, whole or not at all. It fails with fs.ErrExist where there is one.
func (k *Key) Save(path string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("write the key: %w", err)
	}
	tmp, err := os.CreateTemp(dir, ".key-*") // mode 0600
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
	} else if err != nil { // a file system without links
		if err := os.Rename(tmp.Name(), path); err != nil {
			return fmt.Errorf("write the key: %w", err)
		}
	}
	return nil
}

func from(private ed25519.PrivateKey) (*Key, error) {
	public := private.Public().(ed25519.PublicKey)
	// Nobody checks the dates: a clock that is wrong must not keep a worker out.
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "brood"},
		NotBefore: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	return &Key{private: private, node: NodeOf(public),
		cert: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}}, nil
}

// Node is the id that the key gives.
func (k *Key) Node() wire.NodeID { return k.node }

// NodeOf is the id of a public key.
func NodeOf(public ed25519.PublicKey) wire.NodeID { return sha256.Sum256(public) }

// ResetKey is a secret that is the same whenever this key is loaded: QUIC's stateless resets are made from it, by which
// peers notice a restart at once.
func (k *Key) ResetKey() [32]byte {
	h := hmac.New(sha256.New, k.private.Seed())
	h.Write([]byte("brood quic stateless reset"))
	return [32]byte(h.Sum(nil))
}
