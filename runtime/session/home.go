package session

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"time"

	"brood/models/usererr"
)

// Home returns the directory of all sessions: $BROOD_SESSIONS, or else brood/sessions in the user's state directory. It
// may not exist yet.
func Home() (string, error) {
	if dir := os.Getenv("BROOD_SESSIONS"); dir != "" {
		return filepath.Abs(dir)
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "brood", "sessions"), nil
	}
	if dir := os.Getenv("LocalAppData"); goruntime.GOOS == "windows" && dir != "" {
		return filepath.Join(dir, "brood", "sessions"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("session: no place for sessions: set BROOD_SESSIONS to a directory: %w", err)
	}
	if goruntime.GOOS == "darwin" {
		return filepath.Join(home, "Library", "Application Support", "brood", "sessions"), nil
	}
	return filepath.Join(home, ".local", "state", "brood", "sessions"), nil
}

// State returns the path of a file of this user, such as a key: a hidden file in Home.
func State(name string) (string, error) {
	home, err := Home()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, "."+name), nil
}

// NewDir creates an empty directory in Home with a readable and unique name such as 2026-11-21-quickstart-7f3a. The
// name contains "run" if the preset has no name.
func NewDir(preset string, now time.Time) (string, error) {
	home, err := Home()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		return "", fmt.Errorf("session: make %s, or set BROOD_SESSIONS to a directory: %w", home, err)
	}
	stem := filepath.Join(home, now.Format(time.DateOnly)+"-"+plain(preset)+"-")
	for {
		var b [2]byte
		_, _ = rand.Read(b[:]) // never fails
		dir := stem + hex.EncodeToString(b[:])
		err := os.Mkdir(dir, 0o700)
		if err == nil {
			return dir, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("session: %w: set BROOD_SESSIONS to a directory that you may write to", err)
		}
	}
}

// plain returns a file name made from a preset's name or path.
func plain(name string) string {
	name = strings.TrimSuffix(filepath.Base(filepath.ToSlash(name)), ".toml")
	var b strings.Builder
	for _, c := range strings.ToLower(name) {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			b.WriteRune(c)
		} else if s := b.String(); s != "" && !strings.HasSuffix(s, "-") {
			b.WriteByte('-')
		}
		if b.Len() == 40 {
			break
		}
	}
	if s := strings.Trim(b.String(), "-"); s != "" {
		return s
	}
	return "run"
}

// Place returns the directory of a session that a user names by its path or by a name in Home. A name that begins with a
// dot is a path, since Home has hidden files. A session of that name in the working directory comes first, as in
// [Resolve].
func Place(what string) (string, error) {
	path := !filepath.IsLocal(what) || what[0] == '.' || strings.ContainsRune(what, '/') ||
		strings.ContainsRune(what, filepath.Separator)
	if path || holdsLog(what) {
		return filepath.Clean(what), nil
	}
	home, err := Home()
	return filepath.Join(home, what), err
}

// Resolve returns the directory of a session given a path (absolute, or relative to home), its name, a prefix of its
// name, the last part of its name (7f3a), or the title that the user gave it.
func Resolve(home, what string) (string, error) {
	if what == "" {
		return "", errors.New("session: no session named: list them with brood sessions")
	}
	if holdsLog(what) {
		return filepath.Abs(what)
	}
	within := filepath.Join(home, what) // sessions of sweeps and studies are in subdirectories of home
	if strings.ContainsRune(what, '/') || strings.ContainsRune(what, filepath.Separator) {
		switch {
		case filepath.IsLocal(what) && holdsLog(within):
			return within, nil
		case filepath.IsLocal(what) && closed(within):
			return "", Denied(within)
		}
		return "", noLog(what)
	}
	names, err := Names(home)
	if err != nil {
		return "", err
	}
	var found []string
	for _, n := range names {
		if n == what {
			return filepath.Join(home, n), nil
		}
		if strings.HasPrefix(n, what) || strings.HasSuffix(n, "-"+what) {
			found = append(found, n)
		}
	}
	if len(found) == 0 {
		for _, n := range names {
			if ReadAbout(filepath.Join(home, n)).Name == what {
				found = append(found, n)
			}
		}
	}
	switch {
	case len(found) == 1:
		return filepath.Join(home, found[0]), nil
	case len(found) > 1:
		return "", fmt.Errorf("session: %q may be %s: type more of the name", what, some3(found))
	case filepath.IsLocal(what) && closed(within):
		return "", Denied(within)
	case len(names) == 0:
		return "", fmt.Errorf("session: there is no session %q, nor any other in %s: start one with brood run", what, home)
	}
	written := func(name string) int64 {
		if i, err := os.Stat(filepath.Join(home, name, segmentName(1))); err == nil {
			return i.ModTime().UnixNano()
		}
		return 0
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(written(a), written(b)) })
	return "", fmt.Errorf("session: there is no session %q%s in %s; the latest are %s",
		what, usererr.Suggest(what, names), home, some3(names))
}

// some3 returns the last three names as text, latest first.
func some3(names []string) string {
	var out []string
	for i := len(names) - 1; i >= 0 && len(out) < 3; i-- {
		out = append(out, names[i])
	}
	if len(names) > 3 {
		others := "others"
		if len(names) == 4 {
			others = "other"
		}
		return strings.Join(out, ", ") + fmt.Sprintf(" or %d %s", len(names)-3, others)
	}
	return strings.Join(out, ", ")
}

// Exists reports whether dir holds the log of a session.
func Exists(dir string) bool { return holdsLog(dir) }

// Discard removes the session in dir, with all of its files. It does nothing if dir holds no session, and fails if a
// process writes it.
func Discard(dir string) error {
	if !holdsLog(dir) {
		return nil
	}
	if running, pid := Running(dir); running {
		return &LockedError{Dir: dir, PID: pid}
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove the session %s, which has not begun: %w", dir, err)
	}
	return nil
}

// holdsLog reports whether dir contains a log.
func holdsLog(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, segmentName(1)))
	return err == nil
}

// closed reports whether this user may not look for a log in dir.
func closed(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, segmentName(1)))
	return errors.Is(err, fs.ErrPermission)
}

// Closed returns the directories of home that this user may not read, sorted. Some may be sessions of other users.
func Closed(home string) (out []string) {
	entries, _ := os.ReadDir(home)
	for _, e := range entries {
		if dir := filepath.Join(home, e.Name()); closed(dir) {
			out = append(out, dir)
		}
	}
	return out
}

// Denied returns the error for a session file or directory that this user may not open.
func Denied(path string) error {
	return fmt.Errorf("session: %s: %w: ask its owner for the right to read it, or for a URL, which brood open prints",
		path, fs.ErrPermission)
}

// ErrNoLog is returned for a directory that contains no session or does not exist.
var ErrNoLog = errors.New("holds no session")

func noLog(dir string) error {
	if closed(dir) {
		return Denied(dir)
	}
	return fmt.Errorf("session: %s %w (%s is missing): list them with brood sessions", dir, ErrNoLog, segmentName(1))
}

// Names returns the directories of home that contain a log, sorted.
func Names(home string) (out []string, err error) {
	entries, err := os.ReadDir(home)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, fs.ErrPermission):
		return nil, Denied(home)
	case err != nil:
		return nil, fmt.Errorf("session: %w", err)
	}
	for _, e := range entries {
		if holdsLog(filepath.Join(home, e.Name())) {
			out = append(out, e.Name())
		}
	}
	return out, nil
}
