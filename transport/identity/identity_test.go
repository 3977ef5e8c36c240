package identity

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"brood/transport/wire"
)

func newKey(t *testing.T) *Key {
	t.Helper()
	k, err := New()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "worker.key")
	made, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Load(path)
	if err != nil || again.Node() != made.Node() || again.ResetKey() != made.ResetKey() ||
		!again.private.Equal(made.private) {
		t.Fatalf("another key the second time: %v", err)
	}
	other := newKey(t)
	if other.Node() == made.Node() || other.ResetKey() == made.ResetKey() {
		t.Error("two keys are one")
	}
	if runtime.GOOS == "windows" {
		return
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o660, 0o610, 0o644, 0o777} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
	if _, err := Load(filepath.Dir(path)); err == nil || strings.Contains(err.Error(), "chmod") {
		t.Errorf("a directory: %v", err)
	}
	dangling := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("none", dangling); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dangling); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a link to nothing: %v", err)
	}
}

// TestLoadFromPipe checks that a shell may give a key through a pipe, as in --key <(command).
func TestLoadFromPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	made, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	w.Close()
	pipe := fmt.Sprintf("/dev/fd/%d", r.Fd())
	if _, err := os.Stat(pipe); err != nil {
		t.Skip(err)
	}
	if k, err := Load(pipe); err != nil || k.Node() != made.Node() {
		t.Errorf("it returns %v", err)
	}
}

func TestLoadRefusesInvalidKeys(t *testing.T) {
	for name, text := range map[string]string{"empty": "", "text": "hello",
		"another": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
		"short":   "-----BEGIN BROOD ED25519 SEED-----\nAAAA\n-----END BROOD ED25519 SEED-----\n"} {
		path := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "holds no key of brood") {
			t.Errorf("%s: %v", name, err)
		}
		if got, _ := os.ReadFile(path); string(got) != text {
			t.Errorf("%s was overwritten", name)
		}
	}
	if _, err := Load(t.TempDir()); err == nil {
		t.Error("a directory is a key")
	}
}

// TestLoadRaces: processes that start at the same time with one key file get the same key.
func TestLoadRaces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	var mu sync.Mutex
	var wg sync.WaitGroup
	nodes := map[wire.NodeID]int{}
	for range 16 {
		wg.Go(func() {
			if _, err := Load(path); err != nil {
				t.Error(err)
				return
			}
			k, err := Load(path) // the file's final key
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			nodes[k.Node()]++
			mu.Unlock()
		})
	}
	wg.Wait()
	if len(nodes) != 1 {
		t.Errorf("%d keys in one file", len(nodes))
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

// handshake runs TLS between two configurations, and sends a byte in each direction so that the client receives a
// server's refusal.
func handshake(t *testing.T, client, server *tls.Config) (cs, ss tls.ConnectionState, cerr, serr error) {
	t.Helper()
	a, b := net.Pipe()
	c, s := tls.Client(a, client), tls.Server(b, server)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer b.Close()
		if serr = s.Handshake(); serr == nil {
			ss = s.ConnectionState()
			_, serr = s.Write([]byte{1})
		}
	})
	if cerr = c.Handshake(); cerr == nil {
		cs = c.ConnectionState()
		_, cerr = c.Read(make([]byte, 1))
	}
	a.Close()
	wg.Wait()
	return
}

func TestHandshake(t *testing.T) {
	a, b := newKey(t), newKey(t)
	cs, ss, cerr, serr := handshake(t, a.Client(b.Node()), b.Server())
	if cerr != nil || serr != nil {
		t.Fatal(cerr, serr)
	}
	if n, err := Peer(ss); err != nil || n != a.Node() {
		t.Errorf("the server sees %s, %v", n.Short(), err)
	}
	if n, err := Peer(cs); err != nil || n != b.Node() {
		t.Errorf("the client sees %s, %v", n.Short(), err)
	}
	if cs.Version != tls.VersionTLS13 {
		t.Errorf("TLS %x", cs.Version)
	}
	_, _, cerr, _ = handshake(t, a.Client(a.Node()), b.Server())
	if cerr == nil || !strings.Contains(cerr.Error(), b.Node().Short()) ||
		!strings.Contains(cerr.Error(), a.Node().Short()) {
		t.Errorf("a wrong pin: %v", cerr)
	}
}

// certificate signs public with private.
func certificate(t *testing.T, public, private any) tls.Certificate {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}
}

func TestHostileCertificates(t *testing.T) {
	server, mallory := newKey(t), newKey(t)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	victim := newKey(t)
	chain := mallory.cert
	chain.Certificate = [][]byte{chain.Certificate[0], victim.cert.Certificate[0]}
	// a copied certificate without its private key
	stolen := tls.Certificate{Certificate: victim.cert.Certificate, PrivateKey: mallory.private}
	for name, c := range map[string]struct {
		change  func(*tls.Config)
		wantErr string
	}{
		"none":     {func(c *tls.Config) { c.Certificates = nil }, "certificate"},
		"RSA":      {func(c *tls.Config) { c.Certificates = []tls.Certificate{certificate(t, &rsaKey.PublicKey, rsaKey)} }, "RSA, not ed25519"},
		"ECDSA":    {func(c *tls.Config) { c.Certificates = []tls.Certificate{certificate(t, &ecKey.PublicKey, ecKey)} }, "ECDSA, not ed25519"},
		"chain":    {func(c *tls.Config) { c.Certificates = []tls.Certificate{chain} }, "a chain of 2"},
		"stolen":   {func(c *tls.Config) { c.Certificates = []tls.Certificate{stolen} }, "signature"},
		"ALPN":     {func(c *tls.Config) { c.NextProtos = []string{"h3"} }, "application protocol"},
		"no ALPN":  {func(c *tls.Config) { c.NextProtos = nil }, `"", not "fleet/1"`},
		"TLS 1.2":  {func(c *tls.Config) { c.MaxVersion, c.MinVersion = tls.VersionTLS12, tls.VersionTLS12 }, "version"},
		"(honest)": {func(*tls.Config) {}, ""},
	} {
		config := mallory.Client(server.Node())
		config.VerifyConnection = nil // a hostile client does not verify the server
		c.change(config)
		_, _, _, serr := handshake(t, config, server.Server())
		if c.wantErr == "" {
			if serr != nil {
				t.Error(name, serr)
			}
			continue
		}
		if serr == nil || !strings.Contains(serr.Error(), c.wantErr) {
			t.Errorf("%s: %v, want %q", name, serr, c.wantErr)
		}
		// The same certificates shown by a server.
		if name == "RSA" || name == "chain" {
			config := mallory.Server()
			c.change(config)
			if _, _, cerr, _ := handshake(t, victim.Client(mallory.Node()), config); cerr == nil ||
				!strings.Contains(cerr.Error(), c.wantErr) {
				t.Errorf("a server with %s: %v", name, cerr)
			}
		}
	}
}

// TestResumption: no session is resumed, and a resumed session would still compare the pin.
func TestResumption(t *testing.T) {
	a, b := newKey(t), newKey(t)
	cache := tls.NewLRUClientSessionCache(8)
	try := func(pin *Key, server *tls.Config) (bool, error) {
		config := a.Client(pin.Node())
		config.ClientSessionCache, config.ServerName = cache, "fleet"
		cs, _, cerr, _ := handshake(t, config, server)
		return cs.DidResume, cerr
	}
	ours := b.Server()
	for range 3 {
		if resumed, err := try(b, ours); resumed || err != nil {
			t.Fatalf("resumed %v, %v", resumed, err)
		}
	}
	theirs := b.Server()
	theirs.SessionTicketsDisabled = false
	var resumed bool
	var err error
	for range 3 {
		if resumed, err = try(b, theirs); err != nil {
			t.Fatal(err)
		}
	}
	if !resumed {
		t.Fatal("the test resumes nothing")
	}
	if _, err := try(newKey(t), theirs); err == nil || !strings.Contains(err.Error(), "the peer's key is") {
		t.Errorf("resumed under another pin: %v", err)
	}
}

func TestNodeIsTheHashOfTheKey(t *testing.T) {
	k := newKey(t)
	if n := NodeOf(k.private.Public().(ed25519.PublicKey)); n != k.Node() {
		t.Error("another node")
	}
}
