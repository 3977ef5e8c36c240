package presets

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"brood/runtime/option"
)

// TestPresetsPage: the page of presets has every key of a preset, its full form and a claim, and every metric with its
// unit.
func TestPresetsPage(t *testing.T) {
	text, err := os.ReadFile("../docs/presets.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for _, of := range []reflect.Type{reflect.TypeFor[Preset](), reflect.TypeFor[Full](), reflect.TypeFor[Claim]()} {
		for field := range of.Fields() {
			key := field.Tag.Get("toml")
			if key != "-" && !strings.Contains(page, "`"+key+"`") {
				t.Errorf("presets.md does not name the key %s of %s", key, of.Name())
			}
		}
	}
	for _, x := range option.With(option.Preset) {
		if !strings.Contains(page, "`"+x.Name+"`") {
			t.Errorf("presets.md does not name the key %s", x.Name)
		}
	}
	for name, unit := range Metrics {
		if !strings.Contains(page, fmt.Sprintf("| `%s` | %s |", name, unit)) {
			t.Errorf("presets.md lacks the metric %s in %s", name, unit)
		}
	}
}
