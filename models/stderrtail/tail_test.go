package stderrtail

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestTail(t *testing.T) {
	var x Tail
	if x.Last() != "" || x.Lines() != nil {
		t.Errorf("nothing was said, and it has %q", x.Last())
	}
	fmt.Fprint(&x, "one\n\n  two\x1b[2J\xff\n")
	if !slices.Equal(x.Lines(), []string{"one", "two [2J"}) || x.Last() != "one | two [2J" {
		t.Errorf("%q, %q", x.Lines(), x.Last())
	}
	fmt.Fprint(&x, strings.Repeat("x", 10*kept)+"\nend")
	if l := x.Lines(); len(l) != 2 || len(l[0]) >= kept || l[1] != "end" || len(x.Last()) != shown ||
		!strings.HasSuffix(x.Last(), "x | end") {
		t.Errorf("%d lines, %q", len(l), x.Last())
	}
}
