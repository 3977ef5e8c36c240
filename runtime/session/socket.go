package session

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// maxSocket is the maximum length in bytes of the path of a Unix socket that all systems support.
const maxSocket = 100

// SocketPath returns the path of the control socket of the session in dir. It is in dir or, if that path is too long
// for a socket, in a private directory of this user for temporary files, which SocketPath creates.
func SocketPath(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("session: %w", err)
	}
	// A viewer may use a symbolic link to dir.
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real
	}
	if p := filepath.Join(abs, "socket"); len(p) <= maxSocket {
		return p, nil
	}
	private := filepath.Join(os.TempDir(), "brood-"+strconv.Itoa(os.Getuid()))
	if err := os.MkdirAll(private, 0o700); err != nil {
		return "", fmt.Errorf("session: %w", err)
	}
	if err := mine(private); err != nil {
		return "", fmt.Errorf("session: %s: %w: remove it, or choose a shorter --session path", private, err)
	}
	sum := sha256.Sum256([]byte(abs))
	p := filepath.Join(private, hex.EncodeToString(sum[:8])+".sock")
	if len(p) > maxSocket {
		return "", fmt.Errorf("session: %s is too long for a socket: choose a shorter --session path or TMPDIR", p)
	}
	return p, nil
}
