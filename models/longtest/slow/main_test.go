package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const passing = `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"run","Package":"p","Test":"TestA/x"}
{"Action":"run","Package":"p","Test":"TestA/y"}
{"Action":"pass","Package":"p","Test":"TestA/x","Elapsed":0.5}
{"Action":"pass","Package":"p","Test":"TestA/y","Elapsed":2.5}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0.1}
{"Action":"run","Package":"p","Test":"TestB"}
{"Action":"pass","Package":"p","Test":"TestB","Elapsed":1}
{"Action":"output","Package":"p","Output":"PASS\n"}
{"Action":"output","Package":"p","Output":"ok  \tp\t3.2s\n"}
{"Action":"pass","Package":"p","Elapsed":3.2}
`

// TestReport: packages and tests are listed by decreasing time, parallel subtests count for their test, and the output
// of failed tests is printed.
func TestReport(t *testing.T) {
	for _, c := range []struct {
		name, in, want string
		failed         bool
	}{
		{name: "passes", in: passing, want: `ok  	p	3.2s

seconds by package
    4.0 p

slowest tests
   3.00 p TestA (2.50 y)
   1.00 p TestB
`},
		{name: "a failed test", failed: true, in: `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:3: wrong\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"--- FAIL: TestA (0.25s)\n"}
{"Action":"fail","Package":"p","Test":"TestA","Elapsed":0.25}
{"Action":"output","Package":"p","Output":"FAIL\tp\t0.3s\n"}
{"Action":"fail","Package":"p","Elapsed":0.3}
`, want: `    a_test.go:3: wrong
--- FAIL: TestA (0.25s)
FAIL	p	0.3s

seconds by package

slowest tests
   0.25 p TestA
`},
		{name: "a test that never ends", failed: true, in: `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"panic: test timed out\n"}
{"Action":"fail","Package":"p","Elapsed":0.3}
`, want: `panic: test timed out

seconds by package

slowest tests
`},
		{name: "a build that fails", failed: true, in: `{"ImportPath":"p","Action":"build-output","Output":"p.go:1: syntax error\n"}
{"ImportPath":"p","Action":"build-fail"}
not an event
`, want: `p.go:1: syntax error
not an event

seconds by package

slowest tests
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			save := filepath.Join(t.TempDir(), "events")
			failed, err := run(strings.NewReader(c.in), &out, save, 30)
			if err != nil || failed != c.failed || out.String() != c.want {
				t.Errorf("failed %t, error %v, printed:\n%s", failed, err, out.String())
			}
			if saved, err := os.ReadFile(save); err != nil || string(saved) != c.in {
				t.Errorf("saved %q, %v", saved, err)
			}
		})
	}
}

// TestNoTest: a run in which no test passed is an error, as when a pattern matches nothing.
func TestNoTest(t *testing.T) {
	if _, err := run(strings.NewReader(`{"Action":"pass","Package":"p"}`), &strings.Builder{}, "", 30); err == nil {
		t.Error("no error")
	}
}
