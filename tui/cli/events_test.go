package cli

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"brood/runtime/archive"

	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/verify"
)

var (
	putEvent  = regexp.MustCompile(`"event": *"([a-z]+)"`)
	codeWords = regexp.MustCompile("`([a-z_0-9]+)`")
)

// TestEventsPage: the page of JSON events names every event that is printed, and every key of the summary.
func TestEventsPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/json-events.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, m := range codeWords.FindAllStringSubmatch(string(page), -1) {
		documented = append(documented, m[1])
	}
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	kinds := 0
	for _, name := range sources {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, m := range putEvent.FindAllStringSubmatch(string(text), -1) {
			kinds++
			if !slices.Contains(documented, m[1]) {
				t.Errorf("json-events.md does not name the event %s of %s", m[1], name)
			}
		}
	}
	if kinds < 10 {
		t.Errorf("%d kinds of events were found in the code", kinds)
	}
	for field := range reflect.TypeFor[archive.Result]().Fields() {
		key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !slices.Contains(documented, key) {
			t.Errorf("json-events.md does not name the key %s of the summary", key)
		}
	}
}

// TestVerifiedObject: the page names all keys of the result of verify.
func TestVerifiedObject(t *testing.T) {
	page, err := os.ReadFile("../../docs/json-events.md")
	if err != nil {
		t.Fatal(err)
	}
	_, row, _ := strings.Cut(string(page), "| `brood verify --json` |")
	row, _, _ = strings.Cut(row, "\n")
	for key := range verifiedObject("s", host.Verified{Result: verify.Result{Last: &event.Commit{}}}, time.Second) {
		if key != "event" && !strings.Contains(row, "`"+key+"`") {
			t.Errorf("json-events.md does not name %s", key)
		}
	}
}
