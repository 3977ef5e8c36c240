package docs_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"brood/models"
	"brood/runtime/event"
	"brood/runtime/session"
)

var variable = regexp.MustCompile(`\bBROOD_[A-Z]+(?:_[A-Z]+)*\b`)

// The page of environment variables names those of the code, and no other.
func TestEnvironmentPage(t *testing.T) {
	page, err := os.ReadFile("environment.md")
	if err != nil {
		t.Fatal(err)
	}
	var code []string
	err = filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".go" {
			return err
		}
		text, err := os.ReadFile(name)
		for _, m := range variable.FindAllString(string(text), -1) {
			if !slices.Contains(code, m) {
				code = append(code, m)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := variable.FindAllString(string(page), -1)
	for _, name := range code {
		if !slices.Contains(named, name) {
			t.Errorf("environment.md does not name %s", name)
		}
	}
	for _, name := range named {
		if !slices.Contains(code, name) {
			t.Errorf("environment.md names %s, which nothing reads", name)
		}
	}
}

// The table of layer kinds is the code's.
func TestLayersPage(t *testing.T) {
	page, err := os.ReadFile("layers.md")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for _, kind := range models.Kinds {
		keys := models.LayerKeys[kind]
		text := "–"
		if len(keys) > 0 {
			text = "`" + strings.Join(keys, "`, `") + "`"
		}
		fmt.Fprintf(&want, "| `%s` | %s |\n", kind, text)
	}
	if !strings.Contains(string(page), "| kind | keys |\n|---|---|\n"+want.String()+"\n") {
		t.Errorf("the table of kinds in layers.md is not the code's, which is\n%s", want.String())
	}
	for _, block := range regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllSubmatch(page, -1) {
		if _, err := models.FromSource("layers.md", block[1]); err != nil {
			t.Error(err)
		}
	}
}

// The reader in Python has 60 lines, and knows every kind of record by its key.
func TestPythonKnowsAllKinds(t *testing.T) {
	text, err := os.ReadFile("read_log.py")
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	record := reflect.TypeFor[event.Record]()
	for i := range record.NumField() - 1 { // without the time
		if f := record.Field(i + 1); strings.HasPrefix(f.Tag.Get("cbor"), fmt.Sprint(i+1, ",")) {
			kinds = append(kinds, strings.ToLower(f.Name))
		}
	}
	if all := strings.Join(kinds, " "); len(kinds) != record.NumField()-1 ||
		!strings.Contains(string(text), `"`+all+`".split()`) {
		t.Errorf("the kinds of records are %q", all)
	}
	if n := strings.Count(string(text), "\n"); n > 60 {
		t.Errorf("it has %d lines", n)
	}
}

// The reader in Python finds every record of a log, and says what to install where nothing there reads frames of zstd.
func TestPythonReadsALog(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3 here")
	}
	dir := t.TempDir()
	s, err := session.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	written := []event.Record{
		{At: 1, Config: &event.Config{Version: 1, Model: "m", Seed: 7}},
		{At: 2, State: &event.State{Round: 3, Phase: event.Finished, Reason: "its limit is reached"}},
		// which is compressed
		{At: 3, Evaluation: &event.Evaluation{Round: 3, TestError: 2.5, Centre: strings.Repeat("x", 4000)}},
	}
	for _, r := range written {
		if err := s.Append(r); err != nil {
			t.Fatal(err)
		}
		if err := s.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if real, err := exec.Command(python, "-c", "import sys; print(sys.executable)").Output(); err == nil {
		python = strings.TrimSpace(string(real)) // what the path names may be a script
	}
	const install = "read_log.py: this log has frames of zstd: pip install zstandard, or install the program zstd\n"
	bare := exec.Command(python, "read_log.py", dir)
	bare.Env = []string{"PATH=" + t.TempDir()}
	if text, err := bare.CombinedOutput(); err != nil && !strings.HasSuffix(string(text), install) {
		t.Errorf("without programs: %v: %s", err, text)
	}
	cmd := exec.Command(python, "read_log.py", dir)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if errs.String() == install {
		t.Skip("nothing here reads zstd")
	}
	if err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	r, err := session.OpenReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	all := map[int64]string{}
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		all[rec.At] = map[bool]string{rec.Config != nil: "config", rec.State != nil: "state",
			rec.Evaluation != nil: "evaluation"}[true]
	}
	seen := 0
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); seen++ {
		var line struct {
			At     int64
			Kind   string
			Record map[string]any
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if all[line.At] != line.Kind {
			t.Errorf("a record at %d is of kind %q, want %q", line.At, line.Kind, all[line.At])
		}
		if line.Kind == "state" && (line.Record["0"] != 3.0 || line.Record["1"] != "finished") {
			t.Errorf("the state is %v", line.Record)
		}
	}
	if seen != len(all) || len(all) != len(written) {
		t.Errorf("%d records printed of %d, and %d were written", seen, len(all), len(written))
	}
}
