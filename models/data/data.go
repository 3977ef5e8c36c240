package data

import (
	"fmt"
	"strings"
)

// List is the names Load knows, the default first.
func List() []string { return []string{"glyphs", "mnist"} }

// Load reads a set by name with the default validation share. Files are looked for in $BROOD_DATA/NAME, then in the
// user's cache; glyphs needs none.
func Load(name string) (*Set, error) {
	switch name {
	case "glyphs":
		return Glyphs(GlyphTrain, GlyphTest)
	case "mnist":
		return loadMNIST(dirs("mnist"))
	}
	return nil, fmt.Errorf("no data set %q; there are %s", name, strings.Join(List(), ", "))
}
