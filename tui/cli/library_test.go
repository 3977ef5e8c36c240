package cli

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"brood/runtime/event"
	"brood/runtime/option"
	"brood/runtime/session"
	"brood/runtime/view/sourcetest"
	"brood/tui/panel"
	"brood/tui/replay"
)

// newTestShelf returns the library of the sessions in $BROOD_SESSIONS, with a new cache.
func newTestShelf(t *testing.T) *sessionLibrary {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	lib, err := newSessionLibrary(panel.Opened{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(lib.end)
	return lib
}

// shelve creates sessions of one record each; those with a name that begins with running stay open.
func shelve(t *testing.T, names ...string) (home string) {
	home = t.TempDir()
	t.Setenv("BROOD_SESSIONS", home)
	for _, name := range names {
		s, err := session.Create(filepath.Join(home, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Append(event.Record{At: 1e18,
			Config: &event.Config{Version: 1, Model: "lenet", Data: "glyphs"}}); err != nil {
			t.Fatal(err)
		}
		if name == "running" {
			t.Cleanup(func() { s.Close() })
		} else if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return home
}

func TestLibraryListsAndOpens(t *testing.T) {
	home := shelve(t, "done", "running")
	lib := newTestShelf(t)
	all, err := lib.Scan(t.Context(), "")
	if err != nil || len(all) != 2 {
		t.Fatalf("%v, %v", all, err)
	}
	for _, x := range all {
		if x.Running != (x.Name == "running") || x.Dir != filepath.Join(home, x.Name) {
			t.Errorf("listed %+v", x)
		}
	}
	o, err := lib.Open(t.Context(), filepath.Join(home, "done"))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := o.Source.(*replay.Replay); !ok || o.Commander != nil || lib.last().Session != o.Session {
		t.Errorf("opened %+v", o)
	}
	v, err := o.Source.Snapshot(t.Context(), 1)
	if err != nil || v.Config.Model != "lenet" {
		t.Errorf("it holds %v, %v", v, err)
	}
	if err := errors.Join(o.Close(), o.Close()); err != nil {
		t.Errorf("closed twice: %v", err)
	}
	if _, err := lib.Open(t.Context(), filepath.Join(home, "gone")); err == nil {
		t.Error("a session that is not there is opened")
	}
	// No process answers at the control socket of this one.
	if _, err := lib.Open(t.Context(), filepath.Join(home, "running")); err == nil || lib.last().Session != o.Session {
		t.Errorf("a run without a control socket: %v", err)
	}
}

func TestLibraryDeletes(t *testing.T) {
	home := shelve(t, "done", "running")
	lib, elsewhere := newTestShelf(t), filepath.Join(t.TempDir(), "mine")
	if err := os.Mkdir(elsewhere, 0o700); err != nil {
		t.Fatal(err)
	}
	var locked *session.LockedError
	if err := lib.Delete(t.Context(), filepath.Join(home, "running")); !errors.As(err, &locked) {
		t.Errorf("a running session: %v", err)
	}
	for _, dir := range []string{elsewhere, home, filepath.Dir(home), home + "/done/../..", home + "/.."} {
		if err := lib.Delete(t.Context(), dir); err == nil {
			t.Errorf("%s is deleted", dir)
		}
	}
	if err := lib.Delete(t.Context(), filepath.Join(home, "done")); err != nil {
		t.Error(err)
	}
	left, _ := os.ReadDir(home)
	if _, err := os.Stat(elsewhere); err != nil || len(left) != 1 || left[0].Name() != "running" {
		t.Errorf("left %v, %v", left, err)
	}
}

// TestCompareModels: a second export of a model gets another file name.
func TestCompareModels(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, want := range []string{"a.safetensors", "a-2.safetensors", "a-3.safetensors"} {
		got, err := free("a", ".safetensors")
		if err != nil || got != want {
			t.Fatalf("%s, %v; want %s", got, err, want)
		}
		if err := os.WriteFile(got, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLibraryResumesWithObjective: the objective command of the workbench is used only for sessions with an
// objective.
func TestLibraryResumesWithObjective(t *testing.T) {
	home := shelve(t, "classes")
	sourcetest.Write(t, filepath.Join(home, "maximises"),
		event.Record{At: 1e18, Config: &event.Config{Version: 5, Objective: "./f"}})
	lib := newTestShelf(t)
	lib.program = "python3 ./f"
	for name, want := range map[string]string{"classes": "", "maximises": "python3 ./f"} {
		o, err := lib.resumeOptions(filepath.Join(home, name), "fork")
		if got := option.Program.Text(o); err != nil || got != want || o.By != "fork" {
			t.Errorf("%s: goes on with %q by %q (%v), want %q", name, got, o.By, err, want)
		}
	}
}
