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

// Files of a server's directory. They hold the identity of the coordinator, so only their owner may read them.
const (
	keyFile   = "fleet.key"
	stateFile = "fleet.json"
)

// savedState is what a restarted coordinator needs, in addition to its key, so that its workers recognize it.
type savedState struct {
	Run    wire.RunID `json:",omitzero"` // id that clients and workers of a single run name
	Listen string     // address to listen on again
	Gate   identity.GateState
}

// loadState reads what an earlier coordinator of the directory saved. key and k are nil if there is none. It fails if
// there is a state without a key.
func loadState(dir string) (key *identity.Key, k *savedState, err error) {
	if _, err := os.Stat(filepath.Join(dir, keyFile)); err == nil {
		if key, err = identity.Load(filepath.Join(dir, keyFile)); err != nil {
			return nil, nil, err
		}
	}
	path := filepath.Join(dir, stateFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return key, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the last coordinator's state: %w", err)
	}
	k = &savedState{}
	if err := json.Unmarshal(text, k); err != nil {
		return nil, nil, fmt.Errorf("%s is damaged (%w): remove it; workers, viewers and operators then need a new URL",
			path, err)
	}
	if key == nil {
		return nil, nil, fmt.Errorf("%s exists but the key %s does not: put the key back, or remove both; "+
			"workers, viewers and operators then need a new URL", path, keyFile)
	}
	return key, k, nil
}

// Served reports whether the session in dir was recorded by a server, which saved its state there.
func Served(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, stateFile))
	return err == nil
}

// listenAddress returns the address for a restarted server: as configured, with the port that was assigned.
func (s *Server) listenAddress() string {
	host, _, err := net.SplitHostPort(s.cfg.Address)
	u, ok := s.node.Address().(*net.UDPAddr)
	if err != nil || !ok {
		return s.cfg.Address
	}
	return net.JoinHostPort(host, strconv.Itoa(u.Port))
}

// persistIn makes dir, which is created if missing, the directory that persist writes to, and writes the key and the
// state.
func (s *Server) persistIn(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := s.cfg.Key.Save(filepath.Join(dir, keyFile)); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dir = dir
	return s.persist()
}

// persist writes atomically what loadState reads. Without a directory it does nothing. The caller holds mu.
func (s *Server) persist() error {
	if s.dir == "" {
		return nil
	}
	text, err := json.Marshal(savedState{s.id, s.listenAddress(), s.gate.State()})
	if err != nil {
		return fmt.Errorf("encode the coordinator's state: %w", err)
	}
	if bytes.Equal(text, s.written) { // most peers were admitted before
		return nil
	}
	if err := session.WriteFile(filepath.Join(s.dir, stateFile), ".fleet-", text); err != nil {
		return fmt.Errorf("write the coordinator's state: %w", err)
	}
	s.written = text
	return nil
}
