package cli

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"brood/runtime/archive"

	"brood/runtime/session"
)

func TestHostsFile(t *testing.T) {
	const url = `url = "brood://10.0.0.7:4433/token#aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"`
	for text, want := range map[string]string{
		"": "",
		"[[host]]\nname = \"lab\"\nssh = \"ada@lab\"\ncommand = \"/opt/brood\"": "",
		"[[host]]\nssh = \"lab\"":                                                      `host 1: no name`,
		"[[host]]\nname = \"a b\"\nssh = \"lab\"":                                      `host 1: name "a b"`,
		"[[host]]\nname = \"a/b\"\nssh = \"lab\"":                                      `host 1: name "a/b"`,
		"[[host]]\nname = \"lab\"":                                                     "lab needs either ssh or url",
		"[[host]]\nname = \"lab\"\nssh = \"lab\"\n" + url:                              "lab needs either ssh or url",
		"[[host]]\nname = \"lab\"\nssh = \"-oProxyCommand=x\"":                         "give a destination for ssh, such as",
		"[[host]]\nname = \"lab\"\nssh = \"lab; rm -r x\"":                             "give a destination for ssh, such as",
		"[[host]]\nname = \"lab\"\nurl = \"http://lab\"":                               "lab: ",
		"[[host]]\nname = \"lab\"\nport = 3":                                           "line 3: no such key",
		"[[host]\nname = 3":                                                            "line 1: ",
		"[[host]]\nname = \"lab\"\nssh = \"a\"\n[[host]]\nname = \"lab\"\nssh = \"b\"": `host 2: the name "lab" is used twice`,
	} {
		_, err := parseHosts([]byte(text))
		switch {
		case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestRail: the list of another machine is shown unchanged, except for invalid entries.
func TestRail(t *testing.T) {
	home := shelve(t, "done", "running")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	lib := archive.OpenLibrary(home, archive.CacheDir())
	var out bytes.Buffer
	if err := writeRail(&out, lib, home); err != nil {
		t.Fatal(err)
	}
	entries, sums, err := readRail(bytes.NewReader(out.Bytes()), "lab")
	if err != nil || len(entries) != 2 || entries[0].Dir != "ssh://lab/running" || !entries[0].Running || entries[1].Host != "lab" {
		t.Fatalf("%+v, %v", entries, err)
	}
	there := archive.Entry{Name: "done", Dir: filepath.Join(home, "done")}
	want, got := lib.Summary(there), sums["ssh://lab/done"]
	if got.Model != want.Model || got.Phase != want.Phase || got.Round != want.Round || !math.IsNaN(got.Loss) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if _, err := json.Marshal(railOf(there, archive.Summary{Info: session.Info{Score: &session.Scored{Value: math.NaN()}}, Loss: math.Inf(1)})); err != nil {
		t.Errorf("a run that diverged cannot be listed: %v", err)
	}
	far := archive.Summary{Seconds: 9, Figures: map[string]float64{"train_loss": 0.5, "test_r2": math.NaN()},
		Settings: []archive.Setting{{Name: "eta", Value: "0.1"}, {Name: "rho", Value: "1", Default: true}}}
	text, err := json.Marshal(railOf(there, far))
	if err != nil {
		t.Fatal(err)
	}
	_, sums, err = readRail(bytes.NewReader(text), "lab")
	if got := sums["ssh://lab/done"]; err != nil || got.Seconds != 9 || len(got.Figures) != 1 || len(got.Settings) != 1 ||
		got.Settings[0].Value != "0.1" {
		t.Errorf("got %+v, %v", got, err)
	}
	line, _, _ := strings.Cut(out.String(), "\n")
	for text, want := range map[string]string{
		"Welcome to lab!\n": "the answer is not a list of runs",
		strings.Replace(line, `"version":1`, `"version":2`, 1): "use one version on both machines",
		strings.Repeat(line+"\n", maxRailRuns+1):               "more than 10000 runs",
		strings.Repeat("x", 300<<10):                           "read its list of runs",
		strings.Repeat(strings.Replace(line, `"about":{}`, `"about":{},"parent":"`+strings.Repeat("x", 4000)+`"`, 1)+"\n", 6000): "larger than 16 MB",
	} {
		if _, _, err := readRail(strings.NewReader(text), "lab"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
	for _, change := range [][2]string{{`"name":"running"`, `"name":"../running"`}, {`"name":"running"`, `"name":"--help"`}, {`"size":`, `"size":-`},
		{`"about":{`, `"about":{"name":"` + strings.Repeat("x", 10_000) + `"`}} {
		text := strings.Replace(line, change[0], change[1], 1)
		if entries, _, err := readRail(strings.NewReader(text), "lab"); err != nil || len(entries) > 0 {
			t.Errorf("%.60q is believed: %+v, %v", change[1], entries, err)
		}
	}
}

// TestRequestRuns: a list does not wait for hosts: it has their last answer, or a message that the request is pending
// or why it failed.
func TestRequestRuns(t *testing.T) {
	home, bin := shelve(t, "done"), t.TempDir()
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	script := func(text string) {
		if err := os.WriteFile(filepath.Join(bin, "ssh"), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := writeRail(&out, archive.OpenLibrary(home, ""), home); err != nil {
		t.Fatal(err)
	}
	lab := hostLine{Name: "lab", SSH: "ada@lab"}
	for name, c := range map[string]struct{ script, want string }{
		"answers": {"cat <<'END'\n" + out.String() + "END\n", ""},
		"helper":  {"cat <<'END'\n" + out.String() + "END\nsleep 1000 >/dev/null &\n", ""},
		"refuses": {"echo 'ada@lab: Permission denied (publickey).' >&2; exit 255", "lab does not answer: ada@lab: Permission denied (publickey)"},
		"warned":  {"echo '** WARNING: no post-quantum key exchange' >&2; echo 'ssh: no route to host.' >&2; exit 255", "lab does not answer: ssh: no route to host"},
		"older":   {"echo 'Permanently added lab' >&2; echo 'brood: unknown flag: --rail' >&2; exit 2", "its brood is too old"},
		"mute":    {"exit 127", "exit status 127"},
	} {
		t.Run(name, func(t *testing.T) {
			script(c.script)
			h := newHosts([]hostLine{lab}, nil)
			t.Cleanup(h.end)
			folder := h.all()[0]
			s := h.summary(folder) // which may have come meanwhile
			if asking := s.Err == "requesting the runs of lab"; folder.Folder != archive.HostFolder || !folder.Written.IsZero() || !asking && !strings.Contains(s.Err, c.want) {
				t.Fatalf("%+v: %q", folder, s.Err)
			}
			h.asks.Wait()
			folder = h.all()[0]
			switch s := h.summary(folder); {
			case folder.Written.IsZero() || !strings.Contains(s.Err, c.want) || c.want == "" && (s.Err != "" || s.Runs != 1 || len(h.within(lab)) != 1):
				t.Errorf("%+v: %q, %d runs", folder, s.Err, s.Runs)
			}
		})
	}
	// After a failed request the last answer remains, without running runs.
	script("cat <<'END'\n" + strings.ReplaceAll(out.String(), `"seed"`, `"running":true,"seed"`) + "END\n")
	h := newHosts([]hostLine{lab}, nil)
	h.all()
	h.asks.Wait()
	if runs := h.within(lab); len(runs) != 1 || !runs[0].Running {
		t.Errorf("listed runs: %+v", runs)
	}
	script("exit 255")
	h.last["lab"].at = time.Now().Add(-askEvery)
	h.all()
	h.asks.Wait()
	runs := h.within(lab)
	if len(runs) != 1 || runs[0].Running || h.summary(runs[0]).Model != "lenet" || h.summary(h.all()[0]).Err == "" {
		t.Errorf("it no longer answers, and has %+v", runs)
	}
	h.end()
	// The end of the list does not wait for a pending request.
	script("exec sleep 1000")
	h = newHosts([]hostLine{lab}, nil)
	h.all()
	began := time.Now()
	if h.end(); time.Since(began) > time.Minute {
		t.Error("the end waits for a host")
	}
}

// TestHostsFileOfAWorkbench: an unreadable hosts file is reported in the list.
func TestHostsFileOfAWorkbench(t *testing.T) {
	shelve(t)
	path := filepath.Join(t.TempDir(), "hosts.toml")
	t.Setenv("BROOD_HOSTS", path)
	lib := newTestShelf(t)
	all, err := lib.Scan(t.Context(), "")
	if err != nil || len(all) != 1 || !strings.Contains(lib.Summary(all[0]).Err, "hosts.toml") {
		t.Errorf("%+v, %v", all, err)
	}
	if err := os.WriteFile(path, []byte("[[host]]\nname = \"lab\"\nssh = \"ada@lab\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", t.TempDir())
	lib = newTestShelf(t)
	if all, err = lib.Scan(t.Context(), ""); err != nil || len(all) != 1 || all[0].Name != "lab" {
		t.Fatalf("%+v, %v", all, err)
	}
	run := archive.Entry{Name: "a", Dir: "ssh://lab/a", Host: "lab"}
	if c := lib.Travel(run); c == nil || strings.Join(c.Args[1:], " ") != "-o ConnectTimeout=10 -t -- ada@lab brood replay a" {
		t.Errorf("%v", c)
	}
	if run.Running = true; !strings.HasSuffix(strings.Join(lib.Travel(run).Args, " "), "brood attach a") {
		t.Errorf("%v", lib.Travel(run))
	}
	if c := lib.Travel(archive.Entry{Name: "a", Dir: session.Info{Dir: "/tmp/a"}.Dir}); c != nil {
		t.Errorf("%v of a run of this machine", c)
	}
}
