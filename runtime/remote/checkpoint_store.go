package remote

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/zeebo/blake3"

	"brood/runtime/message"
	"brood/runtime/session"
)

// initFile is the file of initial parameters of a run that does not use the model's own.
const initFile = "init.safetensors"

// checkpointStore gives a worker access to the files of a session: it serves checkpoints, and stores the worker's own
// checkpoint files piece by piece.
type checkpointStore struct {
	dir string

	rel       string // path, relative to dir, of the file being written
	file      *os.File
	at, total int64
	sum       *blake3.Hasher // of the bytes written so far
}

// maxShard is the maximum size of one checkpoint file of a worker, in bytes.
const maxShard = 1 << 38

// append writes a piece. whole reports that the file is complete and in place. A write error, such as a full disk, is
// returned in Kept.Err; an error is a violation of the protocol.
func (s *checkpointStore) append(p message.Piece) (whole bool, k message.Stored, err error) {
	end := p.From + int64(len(p.Data))
	if p.From < 0 || len(p.Data) == 0 || len(p.Data) > message.MaxPiece || p.Total > maxShard || end > p.Total {
		return false, k, fmt.Errorf("invalid piece of %q: %d bytes at %d of %d", p.Path, len(p.Data), p.From, p.Total)
	}
	if p.From > 0 && (s.file == nil || p.Path != s.rel || p.From != s.at || p.Total != s.total) {
		return false, k, fmt.Errorf("piece of %q out of order", p.Path)
	}
	k = message.Stored{Path: p.Path, From: p.From}
	if err := s.write(p); err != nil {
		s.discard()
		k.Err = err.Error()
		return false, k, nil
	}
	return s.at == s.total && s.file == nil, k, nil
}

func (s *checkpointStore) write(p message.Piece) error {
	path, err := session.Path(s.dir, p.Path)
	if err != nil {
		return err
	}
	if p.From == 0 {
		s.discard()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if s.file, err = os.CreateTemp(filepath.Dir(path), ".shard-*"); err != nil {
			return err
		}
		s.rel, s.at, s.total, s.sum = p.Path, 0, p.Total, blake3.New()
	}
	if _, err := io.MultiWriter(s.file, s.sum).Write(p.Data); err != nil {
		return err
	}
	if s.at += int64(len(p.Data)); s.at < s.total {
		return nil
	}
	name := s.file.Name()
	err = errors.Join(s.file.Chmod(0o644), s.file.Sync(), s.file.Close())
	if err == nil {
		err = os.Rename(name, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(name))
	}
	s.file = nil
	return nil
}

// digest returns the digest of the newest complete file.
func (s *checkpointStore) digest() string { return fmt.Sprintf("blake3:%x", s.sum.Sum(nil)) }

// discard removes an incomplete file.
func (s *checkpointStore) discard() {
	if s.file == nil {
		return
	}
	_ = s.file.Close() // errors do not matter: the file is removed
	_ = os.Remove(s.file.Name())
	s.file = nil
}

// serve reads a piece for a worker. A failure is returned in Piece.Err.
func (s *checkpointStore) serve(g message.Get) (p message.Piece) {
	p = message.Piece{Path: g.Path, From: g.From}
	data, total, err := s.read(g)
	if err != nil {
		p.Err = err.Error()
		return p
	}
	p.Data, p.Total = data, total
	return p
}

func (s *checkpointStore) read(g message.Get) ([]byte, int64, error) {
	if g.Path != initFile && !isCheckpoint(g.Path) {
		return nil, 0, fmt.Errorf("%q is not a file that workers may read", g.Path)
	}
	path, err := session.Path(s.dir, g.Path)
	if err != nil {
		return nil, 0, err
	}
	f, err := os.Open(path)
	if err != nil {
		if where, ok := errors.AsType[*fs.PathError](err); ok {
			err = where.Err // hides the coordinator's folders from the worker
		}
		return nil, 0, fmt.Errorf("read %s on the coordinator: %w", g.Path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	if g.From < 0 || g.From > info.Size() {
		return nil, 0, fmt.Errorf("%s has %d bytes: byte %d is out of range", g.Path, info.Size(), g.From)
	}
	data := make([]byte, min(message.MaxPiece, info.Size()-g.From))
	if _, err := f.ReadAt(data, g.From); err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, err
	}
	return data, info.Size(), nil
}

// isCheckpoint reports whether a path has the form of session.CheckpointFile.
func isCheckpoint(rel string) bool {
	var round uint64
	var epoch uint32
	var worker int
	_, err := fmt.Sscanf(rel, session.CheckpointDir+"/%d/epoch-%d-worker-%d.safetensors", &round, &epoch, &worker)
	return err == nil && rel == session.CheckpointFile(round, epoch, worker)
}
