package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"brood/runtime/session"
	"brood/tui"
)

// settingsFile is where what a person chose of the workbench is kept, beside the sessions. settingsMost is the most
// that is read of it.
const (
	settingsFile = "workbench.json"
	settingsMost = 256 << 10
)

// readSettings are those of the last time. A file that cannot be read is as if there were none.
func readSettings() (s tui.Settings) {
	path, err := session.State(settingsFile)
	if err != nil {
		return s
	}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return s
	}
	f, err := os.Open(path)
	if err != nil {
		return s
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, settingsMost))
	if err != nil {
		return s
	}
	return tui.ParseSettings(text)
}

// keepSettings writes settings, whole or not at all: one after the other, as often as they are changed.
func keepSettings() func(tui.Settings) error {
	var mu sync.Mutex
	return func(s tui.Settings) error {
		mu.Lock()
		defer mu.Unlock()
		path, err := session.State(settingsFile)
		if err != nil {
			return err
		}
		text, err := json.MarshalIndent(s, "", "  ")
		if err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		f, err := os.CreateTemp(filepath.Dir(path), "."+settingsFile+"-*")
		if err != nil {
			return err
		}
		_, err = f.Write(append(text, '\n'))
		if closed := f.Close(); err == nil {
			err = closed
		}
		if err == nil {
			err = os.Rename(f.Name(), path)
		}
		if err != nil {
			_ = os.Remove(f.Name()) // it is only in the way
		}
		return err
	}
}
