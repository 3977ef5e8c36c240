package cli

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"brood/runtime/archive"

	"brood/runtime/session"

	"github.com/fxamacker/cbor/v2"
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
		"[[host]]\nname = \"lab\"\nport = 3":                                           "line 3: unknown key host.port: a [[host]] has name",
		"[[host]\nname = 3":                                                            "line 1, [[host]: ",
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
	if err != nil || len(entries) != 2 || entries[0].Dir != "ssh://lab/running" || !entries[0].Running ||
		entries[1].Host != "lab" {
		t.Fatalf("%+v, %v", entries, err)
	}
	there := archive.Entry{Name: "done", Dir: filepath.Join(home, "done")}
	want, got := lib.Summary(there), sums["ssh://lab/done"]
	if got.Model != want.Model || got.Phase != want.Phase || got.Round != want.Round || !math.IsNaN(got.Loss) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	message := func(times int, change func(*railRun)) string {
		x := railOf(there, archive.Summary{Seconds: 9, Loss: math.Inf(1), Figures: map[string]float64{"test_r2": math.NaN()},
			Settings: []archive.Setting{{Name: "eta", Value: "0.1"}, {Name: "rho", Value: "1", Default: true}}})
		change(&x)
		text, err := cbor.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Repeat(string(text), times)
	}
	_, sums, err = readRail(strings.NewReader(message(1, func(*railRun) {})), "lab")
	if got := sums["ssh://lab/done"]; err != nil || got.Seconds != 9 || !math.IsInf(got.Loss, 1) ||
		len(got.Figures) != 1 || len(got.Settings) != 1 || got.Settings[0].Value != "0.1" {
		t.Errorf("got %+v, %v", got, err)
	}
	for want, text := range map[string]string{
		"the answer is not a list of runs": "Welcome to lab!\n",
		"use one version on both machines": message(1, func(x *railRun) { x.Version++ }),
		"more than 10000 runs":             message(maxRailRuns+1, func(*railRun) {}),
		"larger than 16 MB":                message(6000, func(x *railRun) { x.Summary.Parent = strings.Repeat("x", 4000) }),
	} {
		if _, _, err := readRail(strings.NewReader(text), "lab"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for what, change := range map[string]func(*railRun){
		"path":  func(x *railRun) { x.Name = "../running" },
		"flag":  func(x *railRun) { x.Name = "--help" },
		"size":  func(x *railRun) { x.Summary.Size = -1 },
		"about": func(x *railRun) { x.Summary.About.Name = strings.Repeat("x", 10_000) },
		"curve": func(x *railRun) { x.Summary.Curve = make([]float64, archive.CurvePoints+1) },
	} {
		entries, _, err := readRail(strings.NewReader(message(1, change)), "lab")
		if err != nil || len(entries) > 0 {
			t.Errorf("an invalid %s is believed: %+v, %v", what, entries, err)
		}
	}
}

// TestRequestRuns: a list does not wait for hosts: it has their last answer, or a message that the request is pending
// or why it failed.
func TestRequestRuns(t *testing.T) {
	home, bin := shelve(t, "running"), t.TempDir()
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	script := func(text string) {
		if err := os.WriteFile(filepath.Join(bin, "ssh"), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	list := filepath.Join(bin, "list")
	var out bytes.Buffer
	if err := errors.Join(writeRail(&out, archive.OpenLibrary(home, ""), home),
		os.WriteFile(list, out.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	lab := hostLine{Name: "lab", SSH: "ada@lab"}
	for name, c := range map[string]struct{ script, want string }{
		"answers": {"cat " + list, ""},
		"helper":  {"cat " + list + "\nsleep 1000 >/dev/null &\n", ""},
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
			if asking := s.Err == "requesting the runs of lab"; folder.Folder != archive.HostFolder ||
				!folder.Written.IsZero() || !asking && !strings.Contains(s.Err, c.want) {
				t.Fatalf("%+v: %q", folder, s.Err)
			}
			h.asks.Wait()
			folder = h.all()[0]
			switch s := h.summary(folder); {
			case folder.Written.IsZero() || !strings.Contains(s.Err, c.want) ||
				c.want == "" && (s.Err != "" || s.Runs != 1 || len(h.within(lab)) != 1):
				t.Errorf("%+v: %q, %d runs", folder, s.Err, s.Runs)
			}
		})
	}
	// After a failed request the last answer remains, without running runs.
	script("cat " + list)
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
	if c := lib.Travel(run); c == nil || strings.Join(c.Args[1:], " ") != "-o ConnectTimeout=10 -t -- ada@lab brood "+
		"replay a" {
		t.Errorf("%v", c)
	}
	if run.Running = true; !strings.HasSuffix(strings.Join(lib.Travel(run).Args, " "), "brood attach a") {
		t.Errorf("%v", lib.Travel(run))
	}
	if c := lib.Travel(archive.Entry{Name: "a", Dir: session.Info{Dir: "/tmp/a"}.Dir}); c != nil {
		t.Errorf("%v of a run of this machine", c)
	}
}
