package models

import (
	"math"
	"strings"
	"testing"

	"brood/models/engine"
)

// TestInt8Models: layers that support whole-number arithmetic, and the errors for others.
func TestInt8Models(t *testing.T) {
	const head = "name = \"x\"\nclasses = 3\narithmetic = \"int8\"\n"
	dense := func(keys string) string { return "[[layer]]\nkind = \"dense\"\n" + keys + "\n" }
	kind := func(k string) string { return "[[layer]]\nkind = \"" + k + "\"\n" }
	for _, c := range []struct{ text, want string }{
		{head + "input = [6]\n" + dense("out = 3"), ""},
		{head + "input = [1, 2, 3]\n" + kind("flatten") + dense("out = 5") + kind("relu") + dense("out = 3\nbias = false"), ""},
		{head + "input = [6]\n" + kind("embedding") + "out = 2\n" + kind("relu") + dense("out = 3"), ""},
		{strings.Replace(head, "int8", "int4", 1) + "input = [6]\n" + dense("out = 3"), `unknown arithmetic "int4"`},
		{"name = \"x\"\nloss = \"mse\"\narithmetic = \"int8\"\ninput = [6]\n" + dense("out = 1"), "take the loss cross-entropy"},
		{head + "input = [6]\n" + dense("out = 5") + dense("out = 3"), "has no relu behind it"},
		{head + "input = [6]\n" + kind("embedding") + "out = 2\n" + dense("out = 3"), "has no relu behind it"},
		{head + "input = [6]\n" + kind("embedding") + "out = 2\n" + kind("relu") + dense("out = 5\npositions = true") + kind("relu") + dense("out = 3"), "has positions = true"},
		{head + "input = [6]\n" + dense("out = 3") + kind("relu"), "cannot be here"},
		{head + "input = [6]\n" + kind("relu") + dense("out = 3"), "cannot be here"},
		{head + "input = [6]\n" + dense("out = 5") + kind("tanh") + dense("out = 3"), "has no relu behind it"},
		{head + "input = [6]\n" + kind("layernorm") + dense("out = 3"), "cannot be here"},
		{head + "input = [32768]\n" + dense("out = 3"), "at most 32767"},
		{head + "input = [3]\n" + dense("out = 3\nname = \"a\"") + kind("relu") + kind("add") + "with = \"a\"\n" + dense("out = 3"), "cannot be here"},
	} {
		s, err := Parse(strings.NewReader(c.text))
		if err != nil {
			t.Fatal(err)
		}
		_, err = Compile(s)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s\n%v, want %q", c.text, err, c.want)
		}
	}
}

// TestInt8Begins: initial values are whole numbers with which a layer preserves the magnitude of its input.
func TestInt8Begins(t *testing.T) {
	m, err := Load("mlp-int8")
	if err != nil {
		t.Fatal(err)
	}
	x := make([]float32, m.Layout.Params)
	if err := m.Init(1, 0, x); err != nil {
		t.Fatal(err)
	}
	var squares float64
	for i, v := range x {
		if v != float32(engine.Whole(v)) {
			t.Fatalf("element %d is %v", i, v)
		}
		squares += float64(v * v)
	}
	n, unit := float64(m.Features), float64(int(1)<<ShiftOf(m.Features))
	if got, want := math.Sqrt(squares/(n*64)), math.Sqrt(2/n)*unit; math.Abs(got/want-1) > 0.02 {
		t.Errorf("weights of deviation %.2f, want %.2f", got, want)
	}
	for n := 3; n < 1<<16; n += 2 + 2*(n/14) { // odd numbers, which are between two powers
		if want := int(math.Round(math.Log2(16 * math.Sqrt(float64(n))))); ShiftOf(n) != want {
			t.Errorf("sums of %d are shifted by %d, want %d", n, ShiftOf(n), want)
		}
	}
}
