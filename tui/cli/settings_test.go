package cli

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"brood/tui/panel"
)

// TestSettingsAreKept: settings are restored in the next workbench, no other file remains in the state directory, and a
// damaged file is ignored.
func TestSettingsAreKept(t *testing.T) {
	home := filepath.Join(t.TempDir(), "not there yet")
	t.Setenv("BROOD_SESSIONS", home)
	if s := readSettings(); !reflect.DeepEqual(s, panel.Settings{}) {
		t.Errorf("before anything was chosen: %+v", s)
	}
	want := panel.Settings{Layout: panel.Layout{Charts: []string{"spread", "bytes"}, Near: map[string]uint{"bytes": 2}},
		Layouts: map[string]panel.NamedLayout{"wide": {Layout: panel.Layout{Charts: []string{"loss"}}, Smoothing: 0.9, Linear: true, Last: 50}, "all": {}}}
	keep := settingsWriter()
	for range 3 {
		if err := keep(want); err != nil {
			t.Fatal(err)
		}
	}
	var draw drawFlags
	opt := draw.options()
	if !reflect.DeepEqual(opt.Settings, want) || opt.Keep == nil {
		t.Errorf("a workbench begins with %+v", opt.Settings)
	}
	all, err := os.ReadDir(home)
	if err != nil || len(all) != 1 || all[0].Name() != ".workbench.json" {
		t.Errorf("beside the sessions lie %v, %v", all, err)
	}
	path := filepath.Join(home, ".workbench.json")
	if err := os.WriteFile(path, []byte("\x00\xff{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s := readSettings(); s.Broken == "" || !reflect.DeepEqual(s, panel.Settings{Broken: s.Broken}) {
		t.Errorf("of damage: %+v", s)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(path, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if s := readSettings(); !reflect.DeepEqual(s, panel.Settings{}) {
		t.Errorf("of a directory: %+v", s)
	}
	if err := keep(want); err == nil {
		t.Error("a directory in its place is no error")
	}
	if all, err := os.ReadDir(home); err != nil || len(all) != 1 {
		t.Errorf("after that there are %v, %v", all, err)
	}
}
