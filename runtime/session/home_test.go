package session

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"brood/runtime/event"
)

func TestHome(t *testing.T) {
	t.Setenv("BROOD_SESSIONS", "/a/b")
	if h, err := Home(); err != nil || h != filepath.FromSlash("/a/b") && goruntime.GOOS != "windows" {
		t.Error(h, err)
	}
	t.Setenv("BROOD_SESSIONS", "")
	abs := t.TempDir()
	t.Setenv("XDG_STATE_HOME", abs)
	if h, err := Home(); err != nil || h != filepath.Join(abs, "brood", "sessions") {
		t.Error(h, err)
	}
	t.Setenv("XDG_STATE_HOME", "relative")
	if h, err := Home(); err != nil || strings.Contains(h, "relative") || !filepath.IsAbs(h) {
		t.Error(h, err)
	}
}

func TestNewDir(t *testing.T) {
	t.Setenv("BROOD_SESSIONS", filepath.Join(t.TempDir(), "new"))
	now := time.Date(2026, 11, 21, 3, 4, 5, 0, time.UTC)
	seen := map[string]bool{}
	for preset, stem := range map[string]string{"quickstart": "2026-11-21-quickstart-", "": "2026-11-21-run-",
		"../x/My Exp!.toml":        "2026-11-21-my-exp-",
		"\x1b[31m":                 "2026-11-21-31m-",
		strings.Repeat("long", 50): "2026-11-21-longlonglonglonglonglonglonglonglonglong-"} {
		for range 20 {
			dir, err := NewDir(preset, now)
			check(t, err)
			if base := filepath.Base(dir); !strings.HasPrefix(base, stem) || len(base) != len(stem)+4 || seen[dir] {
				t.Errorf("%q: %s", preset, base)
			}
			seen[dir] = true
		}
	}
}

func TestListAndResolve(t *testing.T) {
	home := t.TempDir()
	if all, err := List(filepath.Join(home, "none")); err != nil || len(all) != 0 {
		t.Fatal(all, err)
	}
	make := func(name string, at int64, more ...event.Record) *Session {
		s, err := create(filepath.Join(home, name), manual())
		check(t, err)
		c := config()
		c.At = at
		check(t, s.Append(append([]event.Record{c}, more...)...))
		return s
	}
	old := make("2026-01-01-old-aaaa", 1e18,
		event.Record{Plan: &event.Plan{Algorithm: "dp-sgd"}}, event.Record{Plan: &event.Plan{Algorithm: "parle"}},
		event.Record{Evaluation: &event.Evaluation{Round: 3, TestError: 9}}, commit(4),
		event.Record{Evaluation: &event.Evaluation{Round: 5, TestError: 2.5}},
		event.Record{State: &event.State{Phase: event.Training}}, commit(6), points(7, 3),
		event.Record{State: &event.State{Phase: event.Stopped}})
	check(t, old.Close())
	live := make("2026-01-02-live-bbbb", 2e18)
	defer live.Close()
	broken := make("2026-01-02-lost-cccc", 15e17, some(20)...)
	check(t, errors.Join(broken.Append(commit(50)), broken.Close()))
	b := content(t, broken.Dir(), 1)
	b[segmentHeader+frameHeader+3] ^= 1
	check(t, os.WriteFile(filepath.Join(broken.Dir(), segmentName(1)), b, 0o600))
	check(t, os.Mkdir(filepath.Join(home, "not-a-session"), 0o700))
	check(t, os.WriteFile(filepath.Join(home, "file"), nil, 0o600))

	check(t, errors.Join(make("zz", 1).Close(), make("zz1", 2).Close()))
	all, err := List(home)
	check(t, err)
	byName := map[string]Info{}
	for _, x := range all {
		byName[x.Name] = x
	}
	if len(all) != 5 || all[0].Name != "2026-01-02-live-bbbb" {
		t.Fatalf("%+v", all)
	}
	x := byName["2026-01-01-old-aaaa"]
	if x.Algorithm != "parle" || x.Round != 6 || x.Phase != event.Stopped || x.Score == nil || !x.Score.Percent ||
		x.Score.Value != 2.5 || x.TestRound != 5 || x.Running ||
		x.Preset != "quickstart" || x.Model != "mlp" || x.Data != "glyphs" || x.Seed != 7 || x.Started.UnixNano() != 1e18 ||
		x.Size <= int64(len(content(t, old.Dir(), 1))) || x.Err != "" {
		t.Errorf("%+v", x)
	}
	if x := byName["2026-01-02-live-bbbb"]; !x.Running || x.PID != os.Getpid() || x.Score != nil || x.Err != "" {
		t.Errorf("%+v", x)
	}
	if x := byName["2026-01-02-lost-cccc"]; !strings.Contains(x.Err, segmentName(1)) {
		t.Errorf("%+v", x)
	}

	for what, want := range map[string]string{"2026-01-01": "2026-01-01-old-aaaa", "bbbb": "2026-01-02-live-bbbb",
		"zz": "zz", "2026-01-02-live-bbbb": "2026-01-02-live-bbbb",
		filepath.Join(home, "2026-01-01-old-aaaa"): "2026-01-01-old-aaaa"} {
		if dir, err := Resolve(home, what); err != nil || dir != filepath.Join(home, want) {
			t.Errorf("%s: %s, %v", what, dir, err)
		}
	}
	for what, say := range map[string]string{"2026-01-02": "2026-01-02-live-bbbb",
		"zzz": "zz1, zz, 2026-01-02-lost-cccc or 2 others", "": "brood sessions", "a/b": "a/b",
		"not-a-session": "no session"} {
		if dir, err := Resolve(home, what); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%s: %s, %v", what, dir, err)
		}
	}
}

// TestDescribeGoneBack: a session that was rolled back is described at its present round, without the test of a later
// round.
func TestDescribeGoneBack(t *testing.T) {
	s, err := create(filepath.Join(t.TempDir(), "s"), manual())
	check(t, err)
	check(t, s.Append(config(), event.Record{Plan: &event.Plan{Epoch: 1}},
		event.Record{Commit: &event.Commit{Epoch: 1, To: 6}},
		event.Record{Evaluation: &event.Evaluation{Round: 6, TestError: 2}},
		event.Record{Plan: &event.Plan{Epoch: 2, At: 4, From: event.Saved}}))
	check(t, s.Close())
	if x := Describe(s.Dir()); x.Round != 4 || x.Score != nil {
		t.Errorf("round %d with a test error %v, want 4 without any", x.Round, x.Score)
	}
}

func TestPathStaysInside(t *testing.T) {
	dir := t.TempDir()
	if p, err := Path(dir, CheckpointFile(12, 2, 3)); err != nil ||
		p != filepath.Join(dir, "checkpoints", "12", "epoch-2-worker-3.safetensors") {
		t.Error(p, err)
	}
	for _, rel := range []string{"../x", "/etc/passwd", "a/../../b", "", "a\x00b"} {
		if p, err := Path(dir, rel); err == nil {
			t.Errorf("%q: %s", rel, p)
		}
	}
}

func TestPrune(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	s, err := create(dir, manual())
	check(t, err)
	defer s.Close()
	check(t, s.Prune([]string{CheckpointFile(1, 1, 0)}))
	for _, round := range []uint64{5, 10, 15, 20, 25} {
		p, err := s.Path(CheckpointFile(round, 1, 0))
		check(t, errors.Join(err, os.MkdirAll(filepath.Dir(p), 0o700), os.WriteFile(p, nil, 0o600)))
	}
	check(t, os.Mkdir(filepath.Join(dir, CheckpointDir, "mine"), 0o700))
	left := func() (out string) {
		entries, _ := os.ReadDir(filepath.Join(dir, CheckpointDir))
		for _, e := range entries {
			out += e.Name() + " "
		}
		return out
	}
	check(t, s.Prune(nil))
	if got := left(); got != "10 15 20 25 5 mine " {
		t.Error("nothing to keep:", got)
	}
	if err := s.Prune([]string{"../" + CheckpointFile(20, 1, 0)}); err == nil {
		t.Error("a path outside was accepted")
	}
	check(t, s.Prune([]string{CheckpointFile(20, 1, 0), CheckpointFile(10, 1, 1)}))
	if got := left(); got != "10 20 25 mine " {
		t.Error(got)
	}
}

func TestSocketPath(t *testing.T) {
	if goruntime.GOOS == "windows" {
		t.Skip("the test needs short temporary paths")
	}
	tmp, err := os.MkdirTemp("/tmp", "b")
	check(t, err)
	defer os.RemoveAll(tmp)
	t.Setenv("TMPDIR", tmp)
	short := filepath.Join(tmp, "short")
	deep := filepath.Join(tmp, strings.Repeat("deep/", 30))
	check(t, errors.Join(os.Mkdir(short, 0o700), os.MkdirAll(deep, 0o700), os.Symlink(deep, filepath.Join(tmp, "link"))))
	a, err := SocketPath(short)
	if err != nil || filepath.Base(filepath.Dir(a)) != "short" {
		t.Error(a, err)
	}
	b, err := SocketPath(deep)
	if err != nil || len(b) > maxSocket || strings.Contains(b, "deep") {
		t.Error(b, err)
	}
	if c, err := SocketPath(filepath.Join(tmp, "link")); err != nil || c != b {
		t.Error("by a link:", c, err)
	}
	for _, p := range []string{a, b} {
		l, err := net.Listen("unix", p)
		check(t, err)
		l.Close()
	}
	check(t, os.Chmod(filepath.Dir(b), 0o755))
	if _, err := SocketPath(deep); err == nil {
		t.Error("a directory that others can read was accepted")
	}
}

// TestASessionThatBegins: a session with a writer and without records is not damaged.
func TestASessionThatBegins(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	s, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	if x := Describe(dir); x.Err != "" || !x.Running || x.Phase != "" {
		t.Errorf("with a writer it is %+v", x)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if x := Describe(dir); x.Err == "" || x.Running {
		t.Errorf("without a writer it is %+v", x)
	}
}

// TestPlace: a name is a directory of Home, and a path is that path, as is the name of a session in the working
// directory. A path needs no Home.
func TestPlace(t *testing.T) {
	t.Chdir(t.TempDir())
	home := t.TempDir()
	s, err := Create("here")
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	for _, set := range []bool{true, false} {
		t.Setenv("BROOD_SESSIONS", home)
		if !set {
			for _, name := range []string{"BROOD_SESSIONS", "XDG_STATE_HOME", "HOME", "USERPROFILE", "LocalAppData"} {
				t.Setenv(name, "")
			}
		}
		for what, want := range map[string]string{"new": home + "/new", "a.b": home + "/a.b", "-x": home + "/-x",
			"./new": "new", "here": "here", "x/y": "x/y", "/x/y": "/x/y", "x/": "x", ".": ".", "..": "..", ".key": ".key",
			"": "."} {
			got, err := Place(filepath.FromSlash(what))
			if named := strings.HasPrefix(want, home); named && !set {
				if err == nil {
					t.Errorf("%s is %s without a home", what, got)
				}
			} else if err != nil || got != filepath.FromSlash(want) {
				t.Errorf("%s is %s, %v, want %s", what, got, err, want)
			}
		}
	}
}
