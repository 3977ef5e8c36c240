package remote

import (
	"slices"
	"strings"
	"testing"
)

// TestUnreachable: the reason names the problem with a worker's addresses; too many addresses precede an invalid one.
func TestUnreachable(t *testing.T) {
	many := slices.Repeat([]string{"10.0.0.1:4433"}, maxAddresses+1)
	for _, c := range []struct {
		addresses []string
		want      string
	}{
		{nil, ""},
		{many[1:], ""},
		{many, "this worker advertises 9 addresses"},
		{append(slices.Clone(many), "here"), "this worker advertises 10 addresses"},
		{[]string{"10.0.0.1:4433", "here"}, `"here" is no HOST:PORT`},
	} {
		if got := addressProblem(c.addresses); got != "" != (c.want != "") || !strings.Contains(got, c.want) {
			t.Errorf("%q: %q, want %q", c.addresses, got, c.want)
		}
	}
}
