package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// CheckpointDir is the directory of checkpoints in a session. It contains a directory per checkpoint, named by its
// round.
const CheckpointDir = "checkpoints"

// CheckpointFile returns the path of a worker's part of a checkpoint, relative to the session and with slashes, as in
// [event.File]. It includes the epoch so that two checkpoints of the same round, before and after a plan, do not
// overwrite each other.
func CheckpointFile(round uint64, epoch uint32, worker int) string {
	name := fmt.Sprintf("epoch-%d-worker-%d.safetensors", epoch, worker)
	return path.Join(CheckpointDir, strconv.FormatUint(round, 10), name)
}

// Path converts a path relative to the session, with slashes, to a path of the operating system. It returns an error
// for a path outside the session: paths come from logs, and logs are untrusted.
func (s *Session) Path(rel string) (string, error) { return Path(s.dir, rel) }

// Path is [Session.Path] for a session that is only read.
func Path(dir, rel string) (string, error) {
	local, err := filepath.Localize(rel)
	if err != nil {
		return "", fmt.Errorf("session: the path %q leads out of the session: the log is not to be trusted", rel)
	}
	return filepath.Join(dir, local), nil
}

// Checkpoints returns the rounds of the checkpoints of the session in dir, in no particular order. It does not look
// into the files.
func Checkpoints(dir string) (rounds []uint64, err error) {
	entries, err := os.ReadDir(filepath.Join(dir, CheckpointDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if round, bad := strconv.ParseUint(e.Name(), 10, 64); bad == nil && e.IsDir() {
			rounds = append(rounds, round)
		}
	}
	return rounds, err
}

// Prune removes the checkpoints of rounds without a file in keep, a list of paths as in [event.File]. It keeps
// checkpoints that are newer than all of keep, since they may be incomplete. If keep is empty it removes nothing.
func (s *Session) Prune(keep []string) error {
	var newest uint64
	var kept []uint64
	for _, rel := range keep {
		part := strings.Split(rel, "/")
		round, err := strconv.ParseUint(part[min(1, len(part)-1)], 10, 64)
		if len(part) != 3 || part[0] != CheckpointDir || err != nil {
			return fmt.Errorf("session: %q is not the path of a checkpoint", rel)
		}
		kept, newest = append(kept, round), max(newest, round)
	}
	entries, err := os.ReadDir(filepath.Join(s.dir, CheckpointDir))
	if errors.Is(err, fs.ErrNotExist) || len(keep) == 0 {
		return nil
	}
	for _, e := range entries {
		round, bad := strconv.ParseUint(e.Name(), 10, 64)
		if bad == nil && e.IsDir() && round <= newest && !slices.Contains(kept, round) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(s.dir, CheckpointDir, e.Name())))
		}
	}
	if err != nil {
		return fmt.Errorf("session: remove old checkpoints: %w", err)
	}
	return nil
}
