// Command between finds what became slower from one commit to another: it builds both, measures the same suites with
// them in turn, so that other load affects both, and compares the medians. `make compare` runs it.
//
//	go run ./models/native/peer/between [-suites train,es] [-turns 5] [-each 300ms] A B
//
// It exits with status 1 if a figure of B is more than a tenth worse than the figure of A, and with 2 if it fails.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

// tolerance is the relative difference up to which a figure is not worse.
const tolerance = 0.1

func main() {
	suites := flag.String("suites", "kernels,train,es,noise", "what to measure, see brood bench")
	turns := flag.Int("turns", 5, "how often each commit measures")
	each := flag.String("each", "300ms", "how long a figure is measured")
	flag.Parse()
	if flag.NArg() != 2 || *turns < 1 {
		fmt.Fprintln(os.Stderr, "between: give two commits, such as HEAD~1 HEAD: make compare A=HEAD~1 B=HEAD")
		os.Exit(2)
	}
	worse, err := run(flag.Arg(0), flag.Arg(1), strings.Split(*suites, ","), *turns, *each)
	if err != nil {
		fmt.Fprintln(os.Stderr, "between: "+err.Error())
		os.Exit(2)
	}
	if worse > 0 {
		os.Exit(1)
	}
}

func run(a, b string, suites []string, turns int, each string) (worse int, err error) {
	dir, err := os.MkdirTemp("", "between")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var figures [2]map[string]*figure
	var binaries [2]string
	for i, commit := range []string{a, b} {
		if binaries[i], err = build(commit, filepath.Join(dir, fmt.Sprint(i))); err != nil {
			return 0, err
		}
		figures[i] = map[string]*figure{}
	}
	var order []string
	for turn := range turns {
		for _, suite := range suites {
			for i := range 2 {
				i = (i + turn) % 2 // the order alternates
				fmt.Fprintf(os.Stderr, "between: turn %d of %d, %s of %s\n", turn+1, turns, suite, []string{a, b}[i])
				out, err := exec.Command(binaries[i], "bench", suite, "--json", "--each", each).Output()
				if err != nil {
					return 0, fmt.Errorf("%s bench %s: %w", []string{a, b}[i], suite, err)
				}
				names, err := read(out, figures[i])
				if err != nil {
					return 0, err
				}
				for _, name := range names {
					if !slices.Contains(order, name) {
						order = append(order, name)
					}
				}
			}
		}
	}
	return report(os.Stdout, a, b, order, figures), nil
}

// build builds the binary of a commit in a temporary work tree.
func build(commit, dir string) (binary string, err error) {
	say := func(name string, args ...string) error {
		c := exec.Command(name, args...)
		c.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %s %s: %s", commit, name, args[0], bytes.TrimSpace(out))
		}
		return nil
	}
	if err := say("git", "worktree", "add", "--detach", dir, commit); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, say("git", "worktree", "remove", "--force", dir)) }()
	binary = dir + ".brood"
	return binary, say("go", "build", "-C", dir, "-trimpath", "-o", binary, ".")
}

// figure is the values measured under one name.
type figure struct {
	unit   string
	values []float64
}

// read adds the lines of a suite to figures, and returns their names in order.
func read(out []byte, to map[string]*figure) (names []string, err error) {
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var line struct {
			Suite, Name, Unit string
			Value             float64
		}
		if err := d.Decode(&line); errors.Is(err, io.EOF) {
			return names, nil
		} else if err != nil {
			return nil, fmt.Errorf("what bench printed: %w", err)
		}
		name := line.Suite + ": " + line.Name
		if to[name] == nil {
			to[name] = &figure{unit: line.Unit}
		}
		to[name].values = append(to[name].values, line.Value)
		names = append(names, name)
	}
}

// median returns the median of the values and their interquartile range relative to it.
func (f *figure) median() (m, spread float64) {
	s := slices.Sorted(slices.Values(f.values))
	at := func(q float64) float64 { return s[int(math.Round(q*float64(len(s)-1)))] }
	return at(.5), (at(.75) - at(.25)) / at(.5)
}

// report prints a row for each figure that both commits have, and counts those that became worse. Figures that are not
// rates are times or sizes, for which less is better.
func report(w io.Writer, a, b string, order []string, figures [2]map[string]*figure) (worse int) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "figure\tunit\t%s\t%s\tB of A\tspread\t\n", a, b)
	for _, name := range order {
		x, y := figures[0][name], figures[1][name]
		if x == nil || y == nil {
			fmt.Fprintf(t, "%s\t\t\t\t\t\tonly one of them has it\n", name)
			continue
		}
		before, wide := x.median()
		after, wider := y.median()
		ratio, word := after/before, ""
		good := ratio
		if !strings.HasSuffix(x.unit, "/s") {
			good = 1 / ratio
		}
		switch spread := max(wide, wider); {
		case good < 1-tolerance && spread > tolerance:
			word = "worse, by less than runs differ: measure on a quiet machine"
		case good < 1-tolerance:
			word = "WORSE"
			worse++
		}
		fmt.Fprintf(t, "%s\t%s\t%.4g\t%.4g\t%.2f\t%.0f %%\t%s\n", name, x.unit, before, after, ratio, 100*max(wide, wider),
			word)
	}
	_ = t.Flush()
	return worse
}
