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

// CheckpointDir holds a directory for each checkpoint, named by its round, relative to the session.
const CheckpointDir = "checkpoints"

// CheckpointFile is the path of what worker saved of a round in an epoch, relative to the session, with slashes: as in
// [event.File]. A plan between two checkpoints of one round makes another epoch, so neither overwrites the other.
func CheckpointFile(round uint64, epoch uint32, worker int) string {
	return path.Join(CheckpointDir, strconv.FormatUint(round, 10), fmt.Sprintf("epoch-%d-worker-%d.safetensors", epoch, worker))
}

// Path turns a path relative to the session, with slashes, into one that can be opened. It refuses one that leads out
// of the session: such paths come from logs, and logs from anywhere.
func (s *Session) Path(rel string) (string, error) { return Path(s.dir, rel) }

// Path is [Session.Path] for the session in dir, for those who only read it.
func Path(dir, rel string) (string, error) {
	local, err := filepath.Localize(rel)
	if err != nil {
		return "", fmt.Errorf("session: the path %q leads out of the session: the log is not to be trusted", rel)
	}
	return filepath.Join(dir, local), nil
}

// Checkpoints are the rounds of the checkpoints in dir, by their names alone, in no order.
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

// Prune removes checkpoints that lie at or before the newest round of keep and have no file in it. Later ones may be
// still in the making; with nothing to keep nothing is removed. Paths are those of [event.File].
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
