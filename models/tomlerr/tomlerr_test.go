package tomlerr

import (
	"errors"
	"strings"
	"testing"
)

// TestErrorTexts decodes invalid texts: each error is a sentence about a line of the text, without Go types.
func TestErrorTexts(t *testing.T) {
	type layer struct {
		Kind string
		Seq  *bool
		N    *int
		Rate float64
	}
	for text, want := range map[string]string{
		"name = 3":                            "line 1, name = 3: it takes a text in quotes, and this is a number",
		"input = 3":                           "line 1, input = 3: it takes a list of numbers, such as [1, 2], and this is a number",
		`input = ["a"]`:                       `line 1, input = ["a"]: it takes a list of numbers, such as [1, 2], and this is a text`,
		"name = \"a\"\n[[layer]]\n  seq = 1":  "line 3, seq = 1: it takes true or false, and this is a number",
		"[[layer]]\nn = \"four\"":             `line 2, n = "four": it takes a whole number, and this is a text`,
		"[[layer]]\nn = true":                 "line 2, n = true: it takes a value of another form",
		"[[layer]]\nn = 1.5":                  "line 2, n = 1.5: it takes a whole number",
		"[[layer]]\nn = 99999999999999999999": "line 2, n = 99999999999999999999: the number does not fit",
		"[[layer]]\nrate = \"x\"":             `line 2, rate = "x": it takes a number, and this is a text`,
		"layer = 3":                           "line 1, layer = 3: it takes a list of tables, each below its name in two brackets, and this is a number",
		"knobs = [1]":                         "it takes a table, and this is a list",
		"name = \n":                           "line 1, name =: incomplete number",
		"name = \"a\"\nname = \"b\"":          "key name is already defined",
		"name = \"" + strings.Repeat("a", 60): "line 1, name = \"" + strings.Repeat("a", 31) + "…: ",
		"a = 1\n[[layer]]\nknid = 2":          "line 1: unknown key a",
		"[[layer]]\nknid = 2":                 "line 2: unknown key layer.knid",
	} {
		var into struct {
			Name  string
			Input []int
			Layer []layer
			Knobs map[string]float64
		}
		err := Decode([]byte(text), &into)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		if err != nil && (strings.Contains(err.Error(), "struct") || strings.Contains(err.Error(), "[]")) {
			t.Errorf("%q: %v names Go types", text, err)
		}
	}
}

// TestUnknownKeys: the error has the line of each unknown key, and the other keys are decoded.
func TestUnknownKeys(t *testing.T) {
	var into struct{ B int }
	err := Decode([]byte("a = 1\nb = 2\nc = 3\n"), &into)
	var unknown *UnknownError
	if !errors.As(err, &unknown) || len(unknown.Keys) != 2 || unknown.Keys[1].Row != 3 || into.B != 2 {
		t.Fatalf("%v: %+v, b = %d", err, unknown, into.B)
	}
}
