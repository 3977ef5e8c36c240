package rendezvous

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"brood/runtime/launch"
	"brood/transport/identity"
)

// environment returns an environment with one variable.
func environment(name, value string) func(string) string {
	return func(n string) string {
		if n == name {
			return value
		}
		return ""
	}
}

// meet publishes a URL on rank 0 and returns what another rank receives.
func meet(t *testing.T, m Rendezvous, url string) string {
	t.Helper()
	p, err := m.Publisher()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Publish(url); err != nil {
		t.Fatal(err)
	}
	got, err := m.Await(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestFile: ranks without a secret meet in a folder, from which Close removes the file. Await rejects a file that
// others can read.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	m, err := New(launch.Place{Run: "7"}, "", environment("BROOD_RENDEZVOUS", dir))
	if err != nil || m.FixedPort() {
		t.Fatal(err)
	}
	if got := meet(t, m, "brood://a"); got != "brood://a" {
		t.Errorf("received %q", got)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v remain (%v)", left, err)
	}
	if runtime.GOOS == "windows" {
		return // modes do not express permissions
	}
	path := filepath.Join(dir, "brood-7.join")
	if err := os.WriteFile(path, []byte("brood://b"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil { // whatever the umask
		t.Fatal(err)
	}
	if _, err := m.Await(t.Context(), time.Minute); err == nil || !strings.Contains(err.Error(), "other users may "+
		"access it") {
		t.Errorf("a file that others can read: %v", err)
	}
}

// TestPort: ranks with a secret meet at the TCP port of rank 0, and use the address by which they reached it.
func TestPort(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listen := free.Addr().String()
	free.Close()
	secret := environment("BROOD_SECRET", strings.Repeat("x", launch.MinSecret))
	m, err := New(launch.Place{Leader: "127.0.0.1"}, listen, secret)
	if err != nil || !m.FixedPort() {
		t.Fatal(err)
	}
	sent := identity.Join{Address: "192.0.2.1:7", Token: "abc"}
	want := sent
	want.Address = "127.0.0.1:7"
	if got := meet(t, m, sent.String()); got != want.String() {
		t.Errorf("received %q, want %q", got, want)
	}
}

// TestNew: New fails for ranks that cannot meet.
func TestNew(t *testing.T) {
	secret := environment("BROOD_SECRET", strings.Repeat("x", launch.MinSecret))
	for _, c := range []struct {
		place  launch.Place
		listen string
		env    func(string) string
		want   string
	}{
		{launch.Place{}, ":1", environment("", ""), "no secret"},
		{launch.Place{}, ":1", secret, "job array"},
		{launch.Place{Leader: "a"}, ":0", secret, "must know the port"},
		{launch.Place{Leader: "a"}, ":1", environment("BROOD_SECRET", "short"), "BROOD_SECRET: "},
	} {
		if _, err := New(c.place, c.listen, c.env); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v, %s: %v, want %q", c.place, c.listen, err, c.want)
		}
	}
}
