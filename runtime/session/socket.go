package session

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// maxSocket is the longest path of a Unix socket, in bytes, that every system takes.
const maxSocket = 100

// SocketPath is where viewers attach to the session in dir: inside it, or, where that path is too long for a socket,
// under a name of its own in a directory of this user among the temporary files, which is made.
func SocketPath(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("session: %w", err)
	}
	// Whoever attaches may have come here by a link.
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
