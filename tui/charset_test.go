package tui

import (
	"strings"
	"testing"

	"brood/runtime/view/sourcetest"
	"brood/tui/panel"
)

// TestASCIIOnly checks that the environment of the terminal determines whether only ASCII is written, unless the user
// sets it.
func TestASCIIOnly(t *testing.T) {
	for _, c := range []struct {
		env  string
		want bool
	}{
		{"TERM=xterm-256color", false},
		{"TERM=linux", true},
		{"TERM=linux LANG=en_US.UTF-8", true},
		{"TERM=xterm LC_ALL=C LANG=en_US.UTF-8", true},
		{"TERM=xterm LC_ALL= LC_CTYPE=POSIX", true},
		{"TERM=xterm LANG=de_DE.ISO-8859-1", true},
		{"TERM=xterm LANG=de_DE.utf8", false},
		{"TERM=xterm LC_CTYPE=UTF-8 LANG=C", false},
		{"TERM=xterm LC_ALL=C.UTF-8 LANG=C", false},
	} {
		env := strings.Fields(c.env)
		if got := panel.ASCIIOnly(env); got != c.want {
			t.Errorf("%s: %v", c.env, got)
		}
		for _, options := range []panel.Options{{}, {ASCII: true}, {Unicode: true}} {
			opt := options
			opt.Source, opt.Env = sourcetest.NewMemory(), env
			opt.DetectCharset(env)
			if want := options.ASCII || c.want && !options.Unicode; opt.ASCII != want {
				t.Errorf("%s with %+v: ASCII is %v", c.env, options, opt.ASCII)
			}
		}
	}
}
