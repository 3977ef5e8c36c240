// Command slow reads the events of go test -json from standard input. It prints each package's line and the output of
// failed tests, as go test does, then the seconds by package and the slowest tests:
//
//	go test -json ./... | go run ./models/longtest/slow -save bin/test.json
//	go run ./models/longtest/slow <bin/test.json
//
// It exits with 1 if a test or a build failed, or if no test passed.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

func main() {
	save := flag.String("save", "", "file to which the events are copied")
	most := flag.Int("n", 30, "number of tests listed")
	flag.Parse()
	failed, err := run(os.Stdin, os.Stdout, *save, *most)
	if err != nil {
		fmt.Fprintln(os.Stderr, "slow:", err)
	}
	if failed || err != nil {
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer, save string, most int) (failed bool, err error) {
	if save != "" {
		f, err := os.Create(save)
		if err != nil {
			return false, err
		}
		defer f.Close()
		in = io.TeeReader(in, f)
	}
	r := report{packages: map[string]float64{}, tests: map[id]*test{}}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(out, lines.Text()) // what the go command prints itself
			continue
		}
		r.add(e, out)
	}
	r.print(out, most)
	if r.passed == 0 && !r.failed {
		return false, fmt.Errorf("no test passed")
	}
	return r.failed, lines.Err()
}

// event is one line of go test -json; see go doc cmd/test2json.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64 // seconds
}

type id struct{ pkg, test string }

// test is a top-level test with its subtests.
type test struct {
	own, leaves, slowest float64 // seconds: its own, the sum of its subtests that have none, the slowest of these
	slowestName          string
}

func (t *test) seconds() float64 { return max(t.own, t.leaves) }

type report struct {
	packages map[string]float64 // seconds
	tests    map[id]*test
	pending  map[id][]string // output of tests that have not ended
	parents  map[id]bool     // tests that have subtests
	passed   int
	failed   bool
}

// add takes the next event.
func (r *report) add(e event, out io.Writer) {
	if r.pending == nil {
		r.pending, r.parents = map[id][]string{}, map[id]bool{}
	}
	key := id{e.Package, e.Test}
	switch e.Action {
	case "run":
		if i := strings.LastIndex(e.Test, "/"); i >= 0 {
			r.parents[id{e.Package, e.Test[:i]}] = true
		}
	case "build-output":
		fmt.Fprint(out, e.Output)
	case "build-fail":
		r.failed = true
	case "output":
		switch {
		case e.Test != "":
			r.pending[key] = append(r.pending[key], e.Output)
		case e.Output != "PASS\n" && !strings.Contains(e.Output, "[no test files]"):
			fmt.Fprint(out, e.Output)
		}
	case "pass", "fail", "skip":
		r.failed = r.failed || e.Action == "fail"
		if e.Test == "" {
			r.packages[e.Package] = e.Elapsed
			if e.Action == "fail" { // a panic or a time-out leaves tests that have not ended
				for key := range r.pending {
					if key.pkg == e.Package {
						r.flush(key, out)
					}
				}
			}
			return
		}
		if e.Action == "fail" {
			r.flush(key, out)
		}
		if e.Action == "pass" {
			r.passed++
		}
		delete(r.pending, key)
		r.time(e)
	}
}

// flush prints what a failed test wrote.
func (r *report) flush(key id, out io.Writer) {
	for _, line := range r.pending[key] {
		if !strings.HasPrefix(line, "=== ") {
			fmt.Fprint(out, line)
		}
	}
	delete(r.pending, key)
}

func (r *report) time(e event) {
	name, sub, nested := strings.Cut(e.Test, "/")
	t := r.tests[id{e.Package, name}]
	if t == nil {
		t = &test{}
		r.tests[id{e.Package, name}] = t
	}
	switch {
	case !nested:
		t.own = e.Elapsed
	case !r.parents[id{e.Package, e.Test}]:
		t.leaves += e.Elapsed
		if e.Elapsed > t.slowest {
			t.slowest, t.slowestName = e.Elapsed, sub
		}
	}
}

// print lists packages that take a second or more, and the slowest tests.
func (r *report) print(out io.Writer, most int) {
	byPackage := map[string]float64{}
	for key, t := range r.tests {
		byPackage[key.pkg] += t.seconds()
	}
	for pkg, s := range r.packages { // a cached package has no time, but its tests have
		byPackage[pkg] = max(byPackage[pkg], s)
	}
	fmt.Fprintf(out, "\nseconds by package\n")
	for _, pkg := range descending(byPackage) {
		if byPackage[pkg] >= 1 {
			fmt.Fprintf(out, "%7.1f %s\n", byPackage[pkg], pkg)
		}
	}
	seconds := map[id]float64{}
	for key, t := range r.tests {
		seconds[key] = t.seconds()
	}
	fmt.Fprintf(out, "\nslowest tests\n")
	for i, key := range descending(seconds) {
		if i == most {
			break
		}
		t := r.tests[key]
		fmt.Fprintf(out, "%7.2f %s %s", t.seconds(), key.pkg, key.test)
		if t.slowestName != "" {
			fmt.Fprintf(out, " (%.2f %s)", t.slowest, t.slowestName)
		}
		fmt.Fprintln(out)
	}
}

// descending returns the keys of m by falling value, equal ones by name.
func descending[K comparable](m map[K]float64) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b K) int {
		return cmp.Or(cmp.Compare(m[b], m[a]), strings.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
	return keys
}
