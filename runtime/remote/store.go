package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/zeebo/blake3"

	"brood/models/engine"
	"brood/runtime/checkpoint"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/runtime/session"
	"brood/runtime/worker"
)

// store saves and loads a worker's checkpoints at the coordinator, one acknowledged piece at a time. It implements
// worker.Store. dir holds a file while it is in transit.
type store struct {
	ctx     context.Context
	dir     string
	send    func(any) error
	replies <-chan any
}

// ask sends a message and waits for its reply.
func (s *store) ask(msg any) (any, error) {
	if err := s.send(msg); err != nil {
		return nil, err
	}
	select {
	case r := <-s.replies:
		return r, nil
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	}
}

// Save implements worker.Store.
func (s *store) Save(round uint64, epoch uint32, id int, rows []worker.Row) (event.File, error) {
	f, err := (&checkpoint.Files{Dir: s.dir}).Save(round, epoch, id, rows)
	if err != nil {
		return f, fmt.Errorf("write the checkpoint to a temporary file: %w", err)
	}
	path, err := session.Path(s.dir, f.Path)
	if err != nil {
		return f, err
	}
	defer os.Remove(path)
	return f, s.upload(f.Path, path)
}

func (s *store) upload(rel, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	for at := int64(0); at < info.Size(); {
		p := message.Piece{
			Path:  rel,
			From:  at,
			Total: info.Size(),
			Data:  make([]byte, min(message.MaxPiece, info.Size()-at)),
		}
		if _, err := io.ReadFull(file, p.Data); err != nil {
			return err
		}
		r, err := s.ask(p)
		if err != nil {
			return err
		}
		if k, ok := r.(message.Stored); !ok || k.Path != rel || k.From != at {
			return fmt.Errorf("the coordinator replied to a piece of %s with %T", rel, r)
		} else if k.Err != "" {
			return errors.New(k.Err)
		}
		at += int64(len(p.Data))
	}
	return nil
}

// Load implements worker.Store.
func (s *store) Load(cp event.Checkpoint, want func(string) bool) (map[string]engine.Host, error) {
	for _, f := range cp.Files {
		path, err := s.fetch(f)
		if err != nil {
			return nil, fmt.Errorf("fetch the checkpoint of round %d: %w", cp.Round, err)
		}
		defer os.Remove(path)
	}
	return (&checkpoint.Files{Dir: s.dir}).Load(cp, want)
}

// fetch downloads a file into dir and returns its path. It fails if the digest differs from the one in the log.
func (s *store) fetch(f event.File) (string, error) {
	path, err := session.Path(s.dir, f.Path)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	out, err := os.Create(path)
	if err != nil {
		return "", err
	}
	sum := blake3.New()
	err = s.download(f, io.MultiWriter(out, sum))
	if err = errors.Join(err, out.Close()); err != nil {
		return "", err
	}
	if d := fmt.Sprintf("blake3:%x", sum.Sum(nil)); d != f.Digest {
		return "", fmt.Errorf("%s has digest %s; the log has %s", f.Path, d, f.Digest)
	}
	return path, nil
}

func (s *store) download(f event.File, out io.Writer) error {
	for at := int64(0); at < f.Bytes; {
		r, err := s.ask(message.Get{Path: f.Path, From: at})
		if err != nil {
			return err
		}
		p, ok := r.(message.Piece)
		switch {
		case ok && p.Err != "":
			return errors.New(p.Err)
		case !ok || p.Path != f.Path || p.From != at || len(p.Data) == 0 || p.Total != f.Bytes:
			return fmt.Errorf("the coordinator replied to a request for byte %d of %s, which has %d bytes, with %T of %d bytes",
				at, f.Path, f.Bytes, r, len(p.Data))
		}
		if _, err := out.Write(p.Data); err != nil {
			return err
		}
		at += int64(len(p.Data))
	}
	return nil
}
