package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/rogpeppe/go-internal/testscript"

	"brood/runtime/event"
)

// schemas reads docs/events.schema.json: the schema of each event by its name, and of "command". They reject keys that
// the file does not name, although it permits more keys.
var schemas = sync.OnceValues(func() (map[string]*jsonschema.Resolved, error) {
	text, err := os.ReadFile(schemaFile)
	if err != nil {
		return nil, err
	}
	out := map[string]*jsonschema.Resolved{}
	for _, name := range append(schemaNames(text), "command") {
		var all jsonschema.Schema
		if err := json.Unmarshal(text, &all); err != nil {
			return nil, err
		}
		def := all.Defs[name]
		if def.AdditionalProperties == nil {
			def.AdditionalProperties = &jsonschema.Schema{Not: &jsonschema.Schema{}}
		}
		of, err := (&jsonschema.Schema{Ref: "#/$defs/" + name, Defs: all.Defs}).Resolve(nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		events := []any{name}
		if e := def.Properties["event"]; e != nil && e.Enum != nil {
			events = e.Enum
		}
		for _, e := range events {
			out[fmt.Sprint(e)] = of
		}
	}
	return out, nil
})

// schemaFile is absolute, since scripts run in other directories.
var schemaFile, _ = filepath.Abs("../../docs/events.schema.json")

// schemaNames returns the definitions that a line may have.
func schemaNames(text []byte) (names []string) {
	var all jsonschema.Schema
	_ = json.Unmarshal(text, &all) // schemas reports the error
	for _, ref := range all.OneOf {
		names = append(names, strings.TrimPrefix(ref.Ref, "#/$defs/"))
	}
	return names
}

// checkSchema checks a line that a command printed with --json, and returns its event.
func checkSchema(line string) (string, error) {
	all, err := schemas()
	if err != nil {
		return "", err
	}
	var x map[string]any
	if err := json.Unmarshal([]byte(line), &x); err != nil {
		return "", err
	}
	name := fmt.Sprint(x["event"])
	if all[name] == nil || name == "command" {
		return name, fmt.Errorf("events.schema.json has no event %s", name)
	}
	return name, all[name].Validate(x)
}

// TestEventsSchema: the lines of real runs are as docs/events.schema.json has them, and it has every event.
func TestEventsSchema(t *testing.T) {
	t.Setenv("BROOD_SESSIONS", t.TempDir())
	home := os.Getenv("BROOD_SESSIONS")
	seen := map[string]bool{}
	check := func(output string) {
		t.Helper()
		for line := range strings.Lines(output) {
			name, err := checkSchema(line)
			if err != nil {
				t.Errorf("%s%v", line, err)
			}
			seen[name] = true
		}
	}
	for _, args := range [][]string{
		append(tinyRun, "--json", "--session", home+"/a", "--class-weights", "balanced"),
		{"fork", "a", "--at", "1", "--json", "--rounds", "3", "--set", "eta=0.05"},
		strings.Fields(printing["sweep"]),
	} {
		status, out, errs := typing(args...)
		if status != 0 {
			t.Fatal(errs)
		}
		check(out)
	}
	check(talk(t, `{"id":1,"set":{"eta":0.1}}`+"\n"+`{"id":2,"nonsense":1}`+"\n"+`{"id":3,"action":"stop"}`+"\n",
		func(c event.Command, over func()) event.Receipt {
			if c.Action == event.Stop {
				over()
			}
			return event.Receipt{ID: c.ID, Accepted: true, Round: 7}
		}))
	text, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	// the others are checked by scripts: summary checks the lines before it, and schema those of attach
	elsewhere := []string{"alert", "url", "address", "commit", "machine"}
	for _, name := range schemaNames(text) {
		if !seen[name] && !slices.Contains(elsewhere, name) {
			t.Errorf("no line with the event %s was checked", name)
		}
	}
	for _, line := range []string{
		`{"event":"point","round":1,"series":"loss"}`,
		`{"event":"point","round":-1,"series":"loss","value":1}`,
		`{"event":"point","round":1,"series":"loss","value":"1"}`,
		`{"event":"point","round":1,"series":"loss","value":1,"more":1}`,
		`{"event":"nothing"}`,
		`{"event":"command"}`,
	} {
		if _, err := checkSchema(line); err == nil {
			t.Errorf("%s is as the schema has it", line)
		}
	}
}

// schema FILE checks the lines that a command printed with --json.
func schemaOf(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: schema FILE")
	}
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		if _, err := checkSchema(line); err != nil {
			ts.Fatalf("%s%v", line, err)
		}
	}
}
