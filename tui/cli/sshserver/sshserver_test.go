package sshserver

import (
	"crypto/ed25519"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"golang.org/x/crypto/ssh"

	"brood/optim"
	"brood/runtime/testutil"
	"brood/runtime/view/sourcetest"
	"brood/tui/panel"
)

func newSigner(t *testing.T) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// rig is a server with a recorded run behind it, and one key that may come in.
type rig struct {
	*Server
	key   ssh.Signer
	bound ssh.Signer // its line has options
	src   *sourcetest.Memory

	mu    sync.Mutex
	notes []string
	came  []Visitor
}

func serve(t *testing.T) *rig {
	t.Helper()
	dir := t.TempDir()
	r := &rig{key: newSigner(t), src: sourcetest.NewMemory(sourcetest.Run(4, 60)...)}
	authorized := filepath.Join(dir, "authorized_keys")
	r.bound = newSigner(t)
	line := "# those who may come in\nrestrict,command=\"/bin/false\" " +
		string(ssh.MarshalAuthorizedKey(r.bound.PublicKey())) +
		strings.TrimSpace(string(ssh.MarshalAuthorizedKey(r.key.PublicKey()))) + " ada@\x1b[31mlab\n"
	if err := os.WriteFile(authorized, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	r.Server, err = Listen(Config{Address: ":0", HostKey: filepath.Join(dir, "state", "host_key"), Authorized: authorized,
		Note: func(s string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.notes = append(r.notes, s)
		}})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Serve(func(v Visitor) (panel.Options, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.came = append(r.came, v)
			return panel.Options{
				Source:     r.src,
				Title:      "the run",
				By:         v.Name,
				Algorithms: []*optim.Algorithm{sourcetest.Algorithm()},
			}, nil
		})
	}()
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		testutil.Receive(t, done, "end of the SSH server")
		r.src.Close()
	})
	return r
}

func (r *rig) dial(user string, auth ...ssh.AuthMethod) (*ssh.Client, error) {
	return ssh.Dial("tcp", r.Address().String(),
		&ssh.ClientConfig{User: user, Auth: auth, HostKeyCallback: ssh.InsecureIgnoreHostKey(), Timeout: testutil.Timeout})
}

// client returns a connection with the key of the rig; it is closed at the end of the test.
func (r *rig) client(t *testing.T) *ssh.Client {
	t.Helper()
	c, err := r.dial("ada", ssh.PublicKeys(r.key))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func channel(t *testing.T, c *ssh.Client) *ssh.Session {
	t.Helper()
	sess, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	return sess
}

// screen is what a person at the other end sees.
type screen struct {
	mu    sync.Mutex
	vt    *vt.Emulator
	bytes int
	sess  *ssh.Session
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes += len(p)
	return s.vt.Write(p)
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.vt.String()
}

func (s *screen) resize(t *testing.T, w, h int) {
	t.Helper()
	s.mu.Lock()
	s.vt.Resize(w, h)
	s.mu.Unlock()
	if err := s.sess.WindowChange(h, w); err != nil {
		t.Fatal(err)
	}
}

// shows waits until the screen satisfies.
func (s *screen) shows(t *testing.T, what string, ok func(string) bool) {
	t.Helper()
	for deadline := time.Now().Add(testutil.Timeout); ; time.Sleep(20 * time.Millisecond) {
		if text := s.text(); ok(text) {
			return
		} else if time.Now().After(deadline) {
			t.Fatalf("%s does not come:\n%s", what, text)
		}
	}
}

// still waits until nothing has come for a while, and counts what had.
func (s *screen) still(t *testing.T) (bytes int) {
	t.Helper()
	for deadline, last := time.Now().Add(testutil.Timeout), -1; ; time.Sleep(300 * time.Millisecond) {
		s.mu.Lock()
		bytes = s.bytes
		s.mu.Unlock()
		if bytes == last {
			return bytes
		} else if time.Now().After(deadline) {
			t.Fatal("the screen is never still")
		}
		last = bytes
	}
}

func look(t *testing.T, c *ssh.Client, w, h int) (*screen, io.Writer) {
	t.Helper()
	sess := channel(t, c)
	s := &screen{vt: vt.NewEmulator(max(w, 80), max(h, 24)), sess: sess}
	go io.Copy(io.Discard, s.vt) // what the terminal answers: nobody asks over this line
	in, err := sess.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	sess.Stdout = s
	if err := sess.RequestPty("xterm-256color", h, w, ssh.TerminalModes{}); err != nil {
		t.Fatal(err)
	}
	if err := sess.Shell(); err != nil {
		t.Fatal(err)
	}
	return s, in
}

// widest is the length of the longest line.
func widest(text string) (n int) {
	for _, l := range strings.Split(text, "\n") {
		n = max(n, len([]rune(strings.TrimRight(l, " "))))
	}
	return n
}

// TestLook: the workbench comes over SSH, in colour, follows 50 resizes to the last, and goes with q; a frame costs
// little.
func TestLook(t *testing.T) {
	r := serve(t)
	c := r.client(t)
	s, in := look(t, c, 80, 24)
	s.shows(t, "the run", func(x string) bool { return strings.Contains(x, "the run") && strings.Contains(x, "loss") })
	for i := range 50 {
		s.resize(t, 81+i, 25+i/2)
	}
	s.resize(t, 120, 40)
	s.shows(t, "the last size", func(x string) bool {
		lines := strings.Split(strings.TrimRight(x, "\n"), "\n")
		return widest(x) > 110 && widest(x) <= 120 && len(lines) == 40 && strings.TrimSpace(lines[39]) != ""
	})
	before := s.still(t) // a busy machine still redraws for the sizes
	began := time.Now()
	for i := range 20 { // two seconds of a live run, or more on a busy machine
		r.src.Append(sourcetest.Run(4, 61+i)[len(sourcetest.Run(4, 60+i)):]...)
		time.Sleep(100 * time.Millisecond)
	}
	s.mu.Lock()
	rate := float64(s.bytes-before) / time.Since(began).Seconds()
	s.mu.Unlock()
	t.Logf("%.0f bytes a second", rate)
	if rate > 40e3 {
		t.Errorf("%.0f bytes a second: more than 40 kB", rate)
	}
	if _, err := in.Write([]byte("q")); err != nil {
		t.Fatal(err)
	}
	if err := s.sess.Wait(); err != nil {
		t.Errorf("it ends with %v", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.came) != 1 || !strings.HasPrefix(r.came[0].Name, "ada@") || strings.Contains(r.came[0].Name, "\x1b") ||
		!r.came[0].Command {
		t.Errorf("who came: %+v", r.came)
	}
}

// TestSizeless: a terminal that says 0 x 0 is taken for 80 x 24, several look at once, and the server's end is theirs.
func TestSizeless(t *testing.T) {
	r := serve(t)
	var all []*screen
	for i := range 3 {
		c, err := r.dial([]string{"ada", lookOnly, "root"}[i], ssh.PublicKeys(r.key))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		s, _ := look(t, c, 0, 0)
		s.shows(t, "the run", func(x string) bool {
			return strings.Contains(x, "the run") && widest(x) > 60 && widest(x) <= 80
		})
		all = append(all, s)
	}
	r.mu.Lock()
	if len(r.came) != 3 || !r.came[0].Command || r.came[1].Command {
		t.Errorf("who came: %+v", r.came)
	}
	r.mu.Unlock()
	if err := r.Server.Close(); err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		_ = s.sess.Wait() // however it ends, it does
	}
}

// TestStrangers: nobody comes in without an authorized key, and there is nothing but the workbench.
func TestStrangers(t *testing.T) {
	r := serve(t)
	for name, auth := range map[string][]ssh.AuthMethod{"another key": {ssh.PublicKeys(newSigner(t))},
		"a key with options": {ssh.PublicKeys(r.bound)}, "no key": nil, "a password": {ssh.Password("ada")},
		"an empty answer": {ssh.KeyboardInteractive(func(string, string, []string, []bool) ([]string, error) { return nil, nil })}} {
		if c, err := r.dial("ada", auth...); err == nil {
			c.Close()
			t.Errorf("%s lets in", name)
		}
	}
	c := r.client(t)
	sess := channel(t, c)
	if out, err := sess.CombinedOutput("sh -c id"); err == nil || !strings.Contains(string(out), "no commands by SSH") {
		t.Errorf("a command: %q, %v", out, err)
	}
	if l, err := c.Listen("tcp", "127.0.0.1:0"); err == nil {
		l.Close()
		t.Error("a port is forwarded from here")
	}
	if conn, err := c.Dial("tcp", r.Address().String()); err == nil {
		conn.Close()
		t.Error("a port is forwarded to here")
	}
	if err := channel(t, c).RequestSubsystem("sftp"); err == nil {
		t.Error("there is a file system")
	}
}

// TestLargeTerminals: a terminal of any size costs what a large one does, at first and when it changes.
func TestLargeTerminals(t *testing.T) {
	r := serve(t)
	c := r.client(t)
	sess := channel(t, c)
	out, err := sess.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	heap := func() uint64 {
		var m goruntime.MemStats
		goruntime.GC()
		goruntime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	if err := sess.RequestPty("xterm-256color", 1_000_000, 1_000_000, ssh.TerminalModes{}); err != nil {
		t.Fatal(err)
	}
	if err := sess.Shell(); err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 4096)
	if _, err := io.ReadFull(out, first); err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, out)
	for range 3 {
		if err := sess.WindowChange(3_000_000, 3_000_000); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(300 * time.Millisecond) // some frames of that size
	if grown := int64(heap()) - int64(before); grown > 64<<20 {
		t.Errorf("one visitor's screen takes %d MiB", grown>>20)
	}
}

// TestScreensOfAKey: a key has so many screens at once and no more, on however many connections; one that ends makes
// room.
func TestScreensOfAKey(t *testing.T) {
	r := serve(t)
	var all []*ssh.Session
	for range 2 {
		c := r.client(t)
		for range maxOfKey / 2 {
			sess := channel(t, c)
			all = append(all, sess)
		}
		if len(all) < maxOfKey {
			continue
		}
		if _, err := c.NewSession(); err == nil || !strings.Contains(err.Error(), "leave one of them with q") {
			t.Errorf("one screen more: %v", err)
		}
		if err := all[maxOfKey-1].Close(); err != nil {
			t.Fatal(err)
		}
		testutil.Eventually(t, "room where a screen has ended", func() bool {
			_, err := c.NewSession()
			return err == nil
		})
	}
	for i := range 10 * maxEnv {
		if err := all[0].Setenv(fmt.Sprint("A", i), "x"); (err == nil) != (i < maxEnv) {
			t.Fatalf("variable %d: %v", i, err)
		}
	}
}

// TestListen: what cannot be right is one sentence; without a host it is the loopback address alone.
func TestListen(t *testing.T) {
	dir := t.TempDir()
	keys := filepath.Join(dir, "keys")
	if err := os.WriteFile(keys, ssh.MarshalAuthorizedKey(newSigner(t).PublicKey()), 0o600); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct{ address, authorized, want string }{
		{"here", keys, "no HOST:PORT"}, {":0", filepath.Join(dir, "none"), "public keys"},
		{taken.Addr().String(), keys, "no other program"},
	} {
		if s, err := Listen(Config{Address: c.address, HostKey: filepath.Join(dir, "host"), Authorized: c.authorized}); err ==
			nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.address, err)
			if err == nil {
				s.Close()
			}
		}
	}
	s, err := Listen(Config{Address: ":0", HostKey: filepath.Join(dir, "host"), Authorized: keys})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if host, _, _ := net.SplitHostPort(s.Address().String()); host != "127.0.0.1" {
		t.Errorf("it listens on %s", host)
	}
	info, err := os.Stat(filepath.Join(dir, "host"))
	if err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("the host key: %v, %v", info.Mode(), err)
	}
}

// TestParting: when the SSH server closes, a visitor's terminal is as it was before, and the last line says why.
func TestParting(t *testing.T) {
	r := serve(t)
	c := r.client(t)
	s, _ := look(t, c, 80, 24)
	s.shows(t, "the run", func(x string) bool { return strings.Contains(x, "the run") && strings.Contains(x, "loss") })
	r.Part("session a was killed after round 60")
	began := time.Now()
	if err := r.Server.Close(); err != nil {
		t.Error(err)
	}
	if err := s.sess.Wait(); err != nil {
		t.Errorf("the visit ends with %v", err)
	}
	s.mu.Lock()
	text, whole := s.vt.String(), s.vt.IsAltScreen()
	s.mu.Unlock()
	if !strings.Contains(text, "brood: session a was killed after round 60") || strings.Contains(text, "loss") || whole {
		t.Errorf("at the end the terminal has\n%s", text)
	}
	if took := time.Since(began); took > testutil.Timeout {
		t.Errorf("closing took %v", took)
	}
}
