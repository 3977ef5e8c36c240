package cli

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"brood/models/data"
	"brood/models/enginetest"
	"brood/models/longtest"
	"brood/runtime/host"
	"brood/runtime/session"
)

// TestMain lets this test binary run as brood in scripts. BROOD_BINARY names a built binary to test instead.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // the collector would take a third of the processor's time
	testscript.Main(waiting{m}, map[string]func(){"brood": func() { os.Exit(Main()) }})
}

// waiting lets four tests run at the same time on any number of processors, since scripts mostly wait.
type waiting struct{ *testing.M }

func (w waiting) Run() int {
	if runtime.GOMAXPROCS(0) < 4 {
		_ = flag.Set("test.parallel", "4") // -parallel is read later, and stands
	}
	return w.M.Run()
}

// quickScripts lists the scripts of a plain go test: a run, its end, and rejected commands.
var quickScripts = []string{"damaged", "interrupt", "run_json"}

// scripts returns the script files of a directory: all of them if BROOD_BINARY names a binary to test or BROOD_LONG
// selects the terminal group, otherwise the quick ones.
func scripts(t *testing.T, dir string, quick ...string) (files []string) {
	t.Helper()
	pattern := []string{"*"}
	if os.Getenv("BROOD_BINARY") == "" && !longtest.On(longtest.Terminal) {
		pattern = quick
	}
	for _, name := range pattern {
		found, err := filepath.Glob(filepath.Join(dir, name+".txtar"))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: no script %q: %v", dir, name, err)
		}
		files = append(files, found...)
	}
	return files
}

// TestScripts runs the files of testdata/script against the binary, each in a new directory without data sets. It does
// not run in parallel with other tests: a script may look at all processes of the machine.
func TestScripts(t *testing.T) {
	compiled := os.Getenv("POCL_CACHE_DIR") // where PoCL keeps kernels for all tests: a script has a home of its own
	if cache, err := os.UserCacheDir(); compiled == "" && err == nil {
		compiled = filepath.Join(cache, "pocl", "kcache")
	}
	objectives, err := filepath.Abs("../../docs/objectives")
	if err != nil {
		t.Fatal(err)
	}
	// the directory of python3 itself, since the one in PATH may be a wrapper that needs the user's home; "" for none
	python := sync.OnceValue(func() string {
		out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
		if err != nil {
			return ""
		}
		return filepath.Dir(strings.TrimSpace(string(out)))
	})
	torch := sync.OnceValue(func() string { return enginetest.Python("torch") })
	optuna := sync.OnceValue(func() string { return enginetest.Python("optuna") })
	testscript.Run(t, testscript.Params{
		Files:               scripts(t, "testdata/script", quickScripts...),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Condition: func(cond string) (bool, error) {
			if group, ok := strings.CutPrefix(cond, "long:"); ok {
				return longtest.On(longtest.Group(group)), nil
			}
			switch cond {
			case "root":
				return os.Geteuid() == 0, nil
			case "opencl":
				list, _ := host.Devices()
				return slices.ContainsFunc(list, func(d host.Device) bool { return strings.HasPrefix(d.Name, "opencl:") }), nil
			case "python":
				return python() != "", nil
			case "torch":
				return longtest.On(longtest.Arithmetic) && torch() != "", nil // which takes seconds to start
			case "optuna":
				return longtest.On(longtest.Studies) && optuna() != "", nil
			case "onnxruntime":
				_, err := os.Stat(filepath.Join(os.Getenv("BROOD_NODE"), "node_modules", "onnxruntime-web"))
				return os.Getenv("BROOD_NODE") != "" && err == nil, nil
			case "nohup": // no program that is started from here can be hung up
				return signal.Ignored(syscall.SIGHUP), nil
			}
			return false, fmt.Errorf("there is no condition %q", cond)
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("POCL_CACHE_DIR", compiled)
			e.Setenv("OBJECTIVES", objectives)
			e.Setenv("BROOD_NODE", os.Getenv("BROOD_NODE"))
			if longtest.On(longtest.Arithmetic) {
				e.Setenv("TORCH_PYTHON", torch())
			}
			if longtest.On(longtest.Studies) {
				e.Setenv("OPTUNA_PYTHON", optuna())
			}
			if dir := python(); dir != "" {
				e.Setenv("PATH", dir+string(filepath.ListSeparator)+e.Getenv("PATH"))
			}
			e.Setenv("BROOD_SESSIONS", filepath.Join(e.WorkDir, "s"))
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("LocalAppData", filepath.Join(e.WorkDir, "home"))
			if err := drawnGlyphs(filepath.Join(e.WorkDir, "home")); err != nil {
				return err
			}
			if built := os.Getenv("BROOD_BINARY"); built != "" {
				if err := preferred(e, built); err != nil {
					return err
				}
			}
			e.Defer(func() { endAll(e.WorkDir) })
			fleet := processes{}
			e.Values[processesKey{}] = fleet
			e.Defer(fleet.end)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"refuses":  refuses,
			"summary":  summaryOf,
			"schema":   schemaOf,
			"mcp":      mcpCall,
			"begun":    begun,
			"reach":    await,
			"examples": examples,
			"commands": commands,
			"kill9":    kill9,
			"signal":   sendSignal,
			"ended":    ended,
			"flip":     flip, "cut": cut,
			"idx":   idx,
			"serve": serveBackground, "worker": workerBackground, "end": endBackground,
			"sigkill": sigkill, "sigint": sigint, "says": saysBackground, "join": joinBy, "opens": openBackground,
			"series": seriesBackground,
			"launch": launchBackground, "port": freePort, "unseen": unseen, "sshd": sshServer, "slurm": slurmCluster,
			"same":   same,
			"differ": differ,
		},
	})
}

// drawnGlyphs links the user's cached default data set into the home of a script, so that not every process draws it
// again.
func drawnGlyphs(home string) error {
	if _, err := data.Load("glyphs"); err != nil {
		return err
	}
	mine, err := data.Cache("glyphs")
	if err != nil {
		return nil // there is no cache to lend
	}
	if _, err := os.Stat(mine); err != nil {
		return nil
	}
	dir := filepath.Join(home, ".cache", "brood", "data")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.Symlink(mine, filepath.Join(dir, "glyphs"))
}

// preferred puts the built binary before the test binary in the script's PATH.
func preferred(e *testscript.Env, built string) error {
	if _, err := os.Stat(built); err != nil {
		return err
	}
	name := "brood"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	dir := filepath.Join(e.WorkDir, ".tmp", "bin")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.Symlink(built, filepath.Join(dir, name)); err != nil {
		return err
	}
	e.Setenv("PATH", dir+string(os.PathListSeparator)+e.Getenv("PATH"))
	return nil
}

// endAll kills background runs of a script, which have separate OS sessions.
func endAll(work string) {
	for _, glob := range []string{"*", "*/*"} {
		dirs, _ := filepath.Glob(filepath.Join(work, glob))
		for _, dir := range dirs {
			if running, pid := session.Running(dir); running && pid > 0 {
				if p, err := os.FindProcess(pid); err == nil {
					_ = p.Kill()
				}
				for running {
					time.Sleep(5 * time.Millisecond)
					running, _ = session.Running(dir)
				}
			}
		}
	}
}
