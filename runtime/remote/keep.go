package remote

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"brood/runtime/session"
	"brood/transport/identity"
	"brood/transport/wire"
)

// Files of a server's directory. They say who the coordinator is: nobody but its owner may read them.
const (
	keyFile  = "fleet.key"
	keepFile = "fleet.json"
)

// kept is what makes a coordinator that restarts the same to its workers, besides its key.
type kept struct {
	Run    wire.RunID `json:",omitzero"` // that visitors and workers of a single run name
	Listen string     // address that it was told to listen on
	Gate   identity.GateState
}

// recall reads what an earlier coordinator of the directory kept; nil stands for what there is not.
func recall(dir string) (key *identity.Key, k *kept, err error) {
	if _, err := os.Stat(filepath.Join(dir, keyFile)); err == nil {
		if key, err = identity.Load(filepath.Join(dir, keyFile)); err != nil {
			return nil, nil, err
		}
	}
	path := filepath.Join(dir, keepFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return key, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("what the last coordinator kept: %w", err)
	}
	k = &kept{}
	if err := json.Unmarshal(text, k); err != nil {
		return nil, nil, fmt.Errorf("%s is damaged (%w): remove it, and workers and visitors join anew with another URL", path, err)
	}
	if key == nil {
		return nil, nil, fmt.Errorf("%s is there and the key %s is not: put it back, or remove both, and workers and visitors join anew with another URL", path, keyFile)
	}
	return key, k, nil
}

// Served says whether the session in dir was recorded by a server, which left its key there.
func Served(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, keepFile))
	return err == nil
}

// bound is the address to listen on again: as given, with the port that was found.
func (s *Server) bound() string {
	host, _, err := net.SplitHostPort(s.cfg.Address)
	u, ok := s.node.Address().(*net.UDPAddr)
	if err != nil || !ok {
		return s.cfg.Address
	}
	return net.JoinHostPort(host, strconv.Itoa(u.Port))
}

// keepIn keeps from now on in a directory, made where it is missing.
func (s *Server) keepIn(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := s.cfg.Key.Save(filepath.Join(dir, keyFile)); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dir = dir
	return s.keep()
}

// keep writes what recall reads, whole or not at all. The caller holds mu.
func (s *Server) keep() error {
	if s.dir == "" {
		return nil
	}
	text, err := json.Marshal(kept{s.id, s.bound(), s.gate.State()})
	if err != nil {
		return fmt.Errorf("keep who may come in: %w", err)
	}
	if bytes.Equal(text, s.written) { // most who come were here before
		return nil
	}
	if err := session.WriteFile(filepath.Join(s.dir, keepFile), ".fleet-", text); err != nil {
		return fmt.Errorf("keep who may come in: %w", err)
	}
	s.written = text
	return nil
}
