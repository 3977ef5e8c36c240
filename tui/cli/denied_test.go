package cli

import (
	"net"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	"brood/runtime/session"
)

// TestDenied: sessions without read permission are named, with advice.
func TestDenied(t *testing.T) {
	if goruntime.GOOS == "windows" || os.Geteuid() == 0 {
		t.Skip("this user may open everything")
	}
	t.Setenv("BROOD_SESSIONS", t.TempDir())
	others, err := os.MkdirTemp("", "o") // a short path, of which a socket can be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = filepath.WalkDir(others, func(path string, _ os.DirEntry, _ error) error { return os.Chmod(path, 0o700) })
		os.RemoveAll(others)
	})
	theirs := func(name string, mode os.FileMode, file string) string { // file or, where it is "", the directory
		dir := filepath.Join(others, name)
		s, err := session.Create(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() }) // it runs
		path := filepath.Join(dir, file)
		if file == "socket" {
			l, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { l.Close() })
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	shut, log, lock, socket := theirs("shut", 0, ""), theirs("log", 0, "log-000001.brood"), theirs("lock", 0, "lock"),
		theirs("socket", 0, "socket")
	for _, c := range []struct{ line, path string }{
		{"log " + shut, shut},
		{"attach " + shut, shut},
		{"sessions " + filepath.Join(shut, "within"), filepath.Join(shut, "within")},
		{"sessions " + shut, shut},
		{"log " + log, filepath.Join(log, "log-000001.brood")},
		{"attach " + lock, filepath.Join(lock, "lock")},
		{"stop " + socket, filepath.Join(socket, "socket")},
		{"compare " + shut + " " + log, shut},
	} {
		refused(t, c.path+": permission denied: ask its owner", strings.Fields(c.line)...)
	}
	if status, stdout, stderr := typing("sessions", others); status != 0 || !strings.Contains(stdout, "lock ") ||
		!strings.Contains(stdout, "permission denied") ||
		stderr != "brood: "+shut+": permission denied: not listed; ask the owner for read permission\n" {
		t.Errorf("status %d, %q, %q", status, stdout, stderr)
	}
	t.Setenv("BROOD_SESSIONS", others)
	refused(t, shut+": permission denied: ask its owner", "log", "shut")
	for _, dir := range []string{log, lock, socket} {
		if err := os.Chmod(dir, 0); err != nil {
			t.Fatal(err)
		}
	}
	if status, stdout, stderr := typing("sessions"); status != 0 || stdout != "" ||
		!strings.Contains(stderr, " and 1 more: permission denied") {
		t.Errorf("with none that may be opened: status %d, %q, %q", status, stdout, stderr)
	}
	if err := os.Chmod(others, 0); err != nil { // the sessions directory of another user
		t.Fatal(err)
	}
	for _, line := range []string{"log shut", "compare shut log", "rm shut", "sessions"} {
		refused(t, others+": permission denied: ask its owner", strings.Fields(line)...)
	}
	refused(t, "set BROOD_SESSIONS to a directory", "run", "quickstart", "--rounds", "1", "--plain")
}
