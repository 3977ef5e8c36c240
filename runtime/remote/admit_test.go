package remote

import (
	"slices"
	"strings"
	"testing"
)

// TestUnreachable: the sentence names what is wrong with the addresses of a worker, their number before their form.
func TestUnreachable(t *testing.T) {
	many := slices.Repeat([]string{"10.0.0.1:4433"}, maxAddresses+1)
	for _, c := range []struct {
		addresses []string
		says      string
	}{
		{nil, ""},
		{many[1:], ""},
		{many, "you name 9 addresses"},
		{append(slices.Clone(many), "here"), "you name 10 addresses"},
		{[]string{"10.0.0.1:4433", "here"}, `"here" is no HOST:PORT`},
	} {
		if got := addressProblem(c.addresses); got != "" != (c.says != "") || !strings.Contains(got, c.says) {
			t.Errorf("%q: %q, want %q", c.addresses, got, c.says)
		}
	}
}
