package bench

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestNotMeasured: a figure without a value is encoded as null and decoded as NaN.
func TestNotMeasured(t *testing.T) {
	text, err := json.Marshal(notMeasured("a", "s", "why"))
	if want := `{"suite":"","name":"a","unit":"s","note":"why","value":null}`; err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
	var m Figure
	if err := json.Unmarshal(text, &m); err != nil || m.Value == m.Value || m.Name != "a" {
		t.Errorf("%+v, %v", m, err)
	}
	if text, err := json.Marshal(Figure{Value: 0}); err != nil || !strings.Contains(string(text), `"value":0`) {
		t.Errorf("%s, %v", text, err)
	}
}
