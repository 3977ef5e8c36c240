package models

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"slices"
	"strings"

	"brood/models/data"
	"brood/models/usererr"
)

//go:embed zoo/*.toml
var zoo embed.FS

// List returns the names of the embedded models, sorted.
func List() []string {
	entries, err := zoo.ReadDir("zoo")
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		out = append(out, strings.TrimSuffix(e.Name(), ".toml"))
	}
	slices.Sort(out)
	return out
}

// Names returns the names that complete a model: examples of the families, then [List].
func Names() []string { return append(Families(), List()...) }

// Source returns a layer list as TOML: of an embedded model by its name, or of a file if nameOrPath ends in .toml. That
// of a [Family] is for images of 28x28 in ten classes; [Family.Source] returns one for other data.
func Source(nameOrPath string) (text []byte, err error) {
	if f, is, err := ParseFamily(nameOrPath); is {
		if err != nil {
			return nil, err
		}
		d := data.Info{Shape: []int{1, 28, 28}, Classes: 10}
		if f.Loss != "" && f.Loss != CrossEntropy {
			d.Classes, d.Outputs, d.MultiLabel = 0, 10, f.Loss == BCE
		}
		return f.Source(d)
	}
	if strings.HasSuffix(nameOrPath, ".toml") {
		if text, err = os.ReadFile(nameOrPath); err != nil {
			const advice = "give the path of a layer list, or a name of `brood models`"
			return nil, fmt.Errorf("model: %w", usererr.File(err, nameOrPath, advice))
		}
		return text, nil
	}
	if text, err = zoo.ReadFile("zoo/" + nameOrPath + ".toml"); err != nil {
		return nil, usererr.Errorf("model: no model %q%s; there are %s; or give the path of a .toml file, or a model that "+
			"follows the data: %s", nameOrPath, usererr.Suggest(nameOrPath, Names()), strings.Join(List(), ", "),
			strings.Join(Families(), ", "))
	}
	return text, nil
}

// Load compiles the model returned by Source.
func Load(nameOrPath string) (*Model, error) {
	text, err := Source(nameOrPath)
	if err != nil {
		return nil, err
	}
	return FromSource(nameOrPath, text)
}

// FromSource compiles a layer list in TOML. name identifies it in errors.
func FromSource(name string, text []byte) (*Model, error) {
	s, err := Parse(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	m, err := Compile(s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}
