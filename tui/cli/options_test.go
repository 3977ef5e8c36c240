package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"brood/presets"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/option"
	"brood/runtime/option/optiontest"
)

// typing runs a command line in this process.
func typing(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = Run(context.Background(), args, streams{out: &out, err: &errs})
	return status, out.String(), errs.String()
}

// refused checks that a command line fails with a one-line error that contains these words.
func refused(t *testing.T, words string, args ...string) {
	t.Helper()
	status, stdout, stderr := typing(args...)
	if (status != exitUsage && status != exitFailed) || stdout != "" || strings.Count(stderr, "\n") != 1 ||
		!strings.Contains(stderr, words) {
		t.Errorf("brood %s: status %d, %q and %q, want one sentence with %q", strings.Join(args, " "), status, stdout,
			stderr, words)
	}
}

// TestEveryOption: each option of the table, and two options of this test, is a flag of the commands that begin runs,
// with its help text; overrides the preset; is completed; rejects invalid values; and is allowed exactly in the uses
// that it declares: resume, fork and sweep.
func TestEveryOption(t *testing.T) {
	t.Setenv("BROOD_SESSIONS", t.TempDir())
	tally, slack := optiontest.Lines()
	optiontest.Add(t, tally, slack)
	for _, x := range option.All {
		t.Run(x.Name, func(t *testing.T) {
			registered(t, x)
			given(t, x)
			completed(t, x)
			forResume(t, x)
			forSweep(t, x)
			if !x.Has(option.Joined) {
				word := x.Name
				if x.Kind == option.Text && x.Choices == nil {
					word = optiontest.Bad // named by what is wrong with it
				}
				refused(t, word, "run", "quickstart", "--plain", "--session", filepath.Join(t.TempDir(), "s"), "--"+x.Name,
					optiontest.Bad)
			}
		})
	}
}

// registered checks that the flag exists for the right commands and no others.
func registered(t *testing.T, x *option.Option) {
	t.Helper()
	root := newRoot(streams{})
	for command, has := range map[string]bool{"": !x.Has(option.Joined), "run": !x.Has(option.Joined), "serve": true,
		"sweep":        true,
		"fleet launch": true, "fork": x.Has(option.Again) && !x.Has(option.Joined)} {
		c, _, err := root.Find(strings.Fields(command))
		if err != nil {
			t.Fatal(err)
		}
		f := c.Flags().Lookup(x.Name)
		if (f != nil) != has {
			t.Errorf("brood %s --%s: %v, want %v", command, x.Name, f != nil, has)
		}
		if f != nil && (f.Usage != x.DocFor(command) && command != "fleet launch" || f.Value.Type() != string(x.Kind)) {
			t.Errorf("brood %s --%s is %s, %q", command, x.Name, f.Value.Type(), f.Usage)
		}
	}
}

// flags parses flags of run or serve.
func flags(t *testing.T, name string, args ...string) (*runFlags, *cobra.Command) {
	t.Helper()
	f, c := &runFlags{serves: name == "serve"}, &cobra.Command{Use: name}
	f.register(c)
	if f.serves {
		joinFlags(c, &f.opts)
	}
	if err := c.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return f, c
}

// given checks that a flag overrides the preset, and is passed on as it was typed.
func given(t *testing.T, x *option.Option) {
	t.Helper()
	good := optiontest.Good(x)
	for _, command := range []string{"run", "serve"} {
		if command == "run" && x.Has(option.Joined) {
			continue
		}
		f, c := flags(t, command, "--"+x.Name, good)
		if got := passOn(c); !slices.Equal(got, []string{"--" + x.Name + "=" + good}) {
			t.Errorf("passed on as %q", got)
		}
		p, err := presets.Load(presets.Default)
		if err != nil {
			t.Fatal(err)
		}
		o, err := f.merge(p, c.Flags().Changed)
		want := good
		if command == "serve" && x == option.Workers {
			want = "8" // and one to wait for
		}
		if err != nil || x.Text(o) != want {
			t.Errorf("brood %s --%s %s gives %q, %v", command, x.Name, good, x.Text(o), err)
		}
		for _, other := range option.All {
			if !other.Has(option.Ends) && other != x && other != option.Workers && other != option.Wait &&
				other != option.Seed && other.Text(o) != other.Text(p.Options) {
				t.Errorf("brood %s --%s %s makes %s %q", command, x.Name, good, other.Name, other.Text(o))
			}
		}
	}
}

// TestTimeOfDayHasDate: a time of day belongs to the day on which the command starts, also if the run begins after it.
func TestTimeOfDayHasDate(t *testing.T) {
	f, c := flags(t, "run", "--deadline", "17:30")
	o, err := f.merge(presets.Preset{}, c.Flags().Changed)
	if err != nil {
		t.Fatal(err)
	}
	changed, err := f.changes(c, "flag")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []host.Options{o, changed} {
		at, err := time.Parse(time.RFC3339, option.Deadline.Text(o))
		if err != nil || at.Hour() != 17 || time.Until(at) < -time.Minute || time.Until(at) > 26*time.Hour {
			t.Errorf("17:30 is %q, %v", option.Deadline.Text(o), err)
		}
	}
}

func completed(t *testing.T, x *option.Option) {
	t.Helper()
	words := x.Completions()
	if words == nil || x.Kind != option.Text {
		return
	}
	_, out, _ := typing("__complete", "run", "--"+x.Name, "")
	for _, word := range words() {
		if !slices.Contains(strings.Split(out, "\n"), word) {
			t.Errorf("--%s is completed by %q, without %s", x.Name, out, word)
		}
	}
}

func forResume(t *testing.T, x *option.Option) {
	t.Helper()
	good := optiontest.Good(x)
	if !x.Has(option.Again) {
		refused(t, "--"+x.Name+" cannot change with --resume", "run", "--plain", "--resume", "somewhere", "--"+x.Name, good)
		return
	}
	name := "run"
	if x.Has(option.Joined) {
		name = "serve"
	}
	f, c := flags(t, name, "--"+x.Name, good)
	if err := checkResumable(c.Flags().Changed); err != nil {
		t.Error(err)
	}
	o, err := f.changes(c, "flag")
	if err != nil || x.Text(o) != good {
		t.Errorf("resumed with --%s %s: %q, %v", x.Name, good, x.Text(o), err)
	}
}

func forSweep(t *testing.T, x *option.Option) {
	t.Helper()
	good := optiontest.Good(x)
	switch {
	case x == option.Seed:
		refused(t, "give the seeds of a sweep with --seeds", "sweep", "--set", x.Name+"=1,2")
	case !x.Has(option.Axis):
		refused(t, "--set "+x.Name+"=...: a sweep cannot vary it", "sweep", "--set", x.Name+"="+good)
	default:
		o, err := runFlags{}.trial(presets.Preset{}, func(string) bool { return false },
			[]presets.Setting{{Knob: x.Name, Expr: good}})
		if err != nil || x.Text(o) != good || len(o.Set) > 0 {
			t.Errorf("a trial with %s=%s has %q and knobs %v, %v", x.Name, good, x.Text(o), o.Set, err)
		}
		if text := helpOf("sweep"); !strings.Contains(text, x.Name) {
			t.Errorf("the help of sweep does not name %s", x.Name)
		}
	}
}

func helpOf(command string) string {
	_, out, _ := typing(command, "--help")
	return out
}

// TestLimits: a limit on the command line replaces all limits of the preset, except for a target, which may never be
// met.
func TestLimits(t *testing.T) {
	p, err := presets.Parse([]byte("rounds = 9\ntarget = \"loss=0.5\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]event.Limit{
		"":                         {Rounds: 9, Target: "loss=0.5"},
		"--epochs 2":               {Epochs: 2},
		"--target loss=1":          {Rounds: 9, Target: "loss=1"},
		"--target loss=1 --for 3s": {Seconds: 3, Target: "loss=1"},
		"--rounds 4 --epochs 1":    {Rounds: 4, Epochs: 1},
	} {
		f, c := flags(t, "run", strings.Fields(args)...)
		if o, err := f.merge(p, c.Flags().Changed); err != nil || o.Limit != want {
			t.Errorf("%q: %+v, %v, want %+v", args, o.Limit, err, want)
		}
	}
}

// TestPassedOn: flags that are passed on, which also name the directory of a sweep, have one text for each value. Empty
// values are rejected if an option needs a value, for new and for resumed runs.
func TestPassedOn(t *testing.T) {
	for args, want := range map[string]string{"--rounds 0x10": "--rounds=16", "--for 90s": "--for=1m30s",
		"--epochs 1.50": "--epochs=1.5",
		"--probe 0":     "--probe=0", "--members auto": "--members=auto", "--workers 1_0": "--workers=10",
		"--for 0": "--for=0s", "--model a": "--model=a"} {
		if _, c := flags(t, "run", strings.Fields(args)...); !slices.Equal(passOn(c), []string{want}) {
			t.Errorf("%s is passed on as %q, want %s", args, passOn(c), want)
		}
	}
	for _, x := range option.All {
		if x.Above == "" {
			continue
		}
		f, c := flags(t, "run", "--"+x.Name, "0")
		_, fresh := f.merge(presets.Preset{}, c.Flags().Changed)
		_, on := f.changes(c, "flag")
		for _, err := range []error{fresh, on} {
			if x.Has(option.Again) != (on != nil) || fresh == nil ||
				err != nil && !strings.HasPrefix(err.Error(), "--"+x.Name+" 0") {
				t.Errorf("--%s 0: %v", x.Name, err)
			}
		}
	}
}

// TestOrderWithoutDirectory: an order of zero values starts no run.
func TestOrderWithoutDirectory(t *testing.T) {
	home := t.TempDir()
	t.Setenv("BROOD_SESSIONS", home)
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(host.Order{}.Write(out), out.Close()); err != nil {
		t.Fatal(err)
	}
	err = runOrder(t.Context(), streams{in: in})
	if left, _ := os.ReadDir(home); err == nil || !strings.Contains(err.Error(), "it names no directory") ||
		len(left) > 0 {
		t.Errorf("%v, and %d sessions", err, len(left))
	}
}

// TestOrderCarriesEveryOption: an order carries every option to the process that trains.
func TestOrderCarriesEveryOption(t *testing.T) {
	tally, slack := optiontest.Lines()
	optiontest.Add(t, tally, slack)
	var o host.Order
	for _, x := range option.All {
		if err := x.Set(&o.Options, optiontest.Good(x)); err != nil {
			t.Fatal(err)
		}
	}
	var text bytes.Buffer
	if err := o.Write(&text); err != nil {
		t.Fatal(err)
	}
	read, err := host.ReadOrder(&text)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range option.All {
		if got := x.Text(read.Options); got != optiontest.Good(x) {
			t.Errorf("%s arrives as %q", x.Name, got)
		}
	}
}

// tools lists flags of other commands, and keys, with the name of an option of runs: for example the threads of eval,
// and keys of a scaling plan, which are for many runs.
var tools = []string{"scale.go", "scale_predict.go", "../../presets/scaling.go", "eval.go", "eval_models.go", "export.go",
	"simulate.go", "simulate_fleet.go", "bench.go"}

// TestOptionsAreNamedOnce: no literal outside the table names a flag, key or axis of a run: not in a call on flags, in
// a list of names, in a comparison, or in the tag of a field. The architecture page states this rule.
func TestOptionsAreNamedOnce(t *testing.T) {
	checked, places := 0, 1
	for _, pattern := range []string{"*.go", "../../runtime/host/*.go", "../../runtime/evaluate/*.go",
		"../../runtime/sweep/*.go", "../../runtime/forecast/*.go", "../../runtime/archive/*.go", "../../presets/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") || slices.Contains(tools, name) {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			checked++
			for _, found := range namedOptions(file) {
				places++
				t.Errorf("%s names the option %s: take it from the table", name, found)
			}
		}
	}
	if checked < 60 {
		t.Errorf("only %d files were checked", checked)
	}
	page, err := os.ReadFile("../../docs/architecture.md")
	if want := fmt.Sprintf("Places to change for an option: %d.", places); err != nil ||
		!strings.Contains(string(page), want) {
		t.Errorf("docs/architecture.md does not say %q (%v)", want, err)
	}
	for _, bad := range []string{`fl.IntVar(&x, "threads", 0, "")`, `given("seed")`, `_ = []string{"background", "seed"}`,
		`_ = a.Name == "members"`,
		`type _ struct { A string ` + "`toml:\"augment\"`" + `}`} {
		file, err := parser.ParseFile(token.NewFileSet(), "", "package a\nfunc f() {\n"+bad+"\n}",
			parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if len(namedOptions(file)) != 1 {
			t.Errorf("%s names %v", bad, namedOptions(file))
		}
	}
}

func namedOptions(file *ast.File) (out []string) {
	look := func(e ast.Expr) {
		if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, _ := strconv.Unquote(lit.Value); option.Named(strings.TrimPrefix(text, "--")) != nil {
				out = append(out, text)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			name := ""
			switch f := n.Fun.(type) {
			case *ast.Ident:
				name = f.Name
			case *ast.SelectorExpr:
				name = f.Sel.Name
			}
			of := []string{"given", "Changed", "Lookup", "Flag", "Set", "MarkHidden", "passOn",
				"RegisterFlagCompletionFunc", "add"}
			if slices.Contains(of, name) || strings.HasSuffix(name, "Var") || strings.HasSuffix(name, "VarP") ||
				strings.HasPrefix(name, "Get") {
				for _, a := range n.Args {
					look(a)
				}
			}
		case *ast.CompositeLit:
			if a, ok := n.Type.(*ast.ArrayType); ok && fmt.Sprint(a.Elt) == "string" {
				for _, e := range n.Elts {
					look(e)
				}
			}
		case *ast.BinaryExpr:
			if s, ok := n.X.(*ast.SelectorExpr); ok && s.Sel.Name == "Name" {
				look(n.Y)
			}
		case *ast.Field:
			if n.Tag != nil {
				tag, _ := strconv.Unquote(n.Tag.Value)
				if _, key, ok := strings.Cut(tag, `toml:"`); ok {
					look(&ast.BasicLit{Kind: token.STRING, Value: `"` + key})
				}
			}
		}
		return true
	})
	return out
}
