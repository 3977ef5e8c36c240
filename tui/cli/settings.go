package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"brood/runtime/session"
	"brood/tui/panel"
)

const (
	settingsFile     = "workbench.json" // settings of the workbench, in the state directory of this user
	maxSettingsBytes = 256 << 10
)

// readSettings returns the saved settings of the workbench, or empty settings if the file cannot be read.
func readSettings() (s panel.Settings) {
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
	text, err := io.ReadAll(io.LimitReader(f, maxSettingsBytes))
	if err != nil {
		return s
	}
	return panel.ParseSettings(text)
}

// settingsWriter returns a function that writes the settings file atomically. It is safe for concurrent use.
func settingsWriter() func(panel.Settings) error {
	var mu sync.Mutex
	return func(s panel.Settings) error {
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
		return session.WriteFile(path, "."+settingsFile+"-", append(text, '\n'))
	}
}
