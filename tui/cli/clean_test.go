package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"unicode/utf8"
)

// evil is a name that attacks a terminal: it sets the title, clears the screen, rings the bell, breaks the line and
// reverses the direction of text, with sequences of 7 and of 8 bits.
const evil = "e\x1b]0;title\a\x1b[2J\x1b[31m\rx\n\x7f\u009b2J\u202e\u2066\u200f\u2028"

// harmless fails the test if a text contains characters that act on a terminal.
func harmless(t *testing.T, what, text string) {
	t.Helper()
	for i, r := range text {
		if hostile(r) && r != '\n' && r != '\t' {
			t.Errorf("%s: %q at byte %d of %q", what, r, i, text)
			return
		}
	}
	if !utf8.ValidString(text) {
		t.Errorf("%s: no UTF-8: %q", what, text)
	}
}

func TestClean(t *testing.T) {
	var out bytes.Buffer
	n, err := fmt.Fprintf(&cleaned{&out}, "%s\té–漢\r\n\xff\x9b", evil)
	if want := "e�]0;title��[2J�[31m�x\n��2J����\té–漢\n��"; err != nil || n != len(evil)+len("\té–漢\r\n\xff\x9b") ||
		out.String() != want {
		t.Errorf("%d bytes, %v: %q, want %q", n, err, out.String(), want)
	}
	harmless(t, "cleaned", out.String())
	if s := oneLine("a\nb\tc"); s != "a b c" {
		t.Errorf("within a line: %q", s)
	}
	text := sentence(errors.Join(errors.New("first"), &fs.PathError{Op: "stat", Path: "a\nb", Err: fs.ErrNotExist}))
	if text != "first\nstat a b: file does not exist" {
		t.Errorf("an error is printed as %q", text)
	}
	if out.Reset(); objects(&cleaned{&out}, "\u202e\x1b") != nil || out.String() != "\"\u202e\\u001b\"\n" {
		t.Errorf("JSON is %q", out.String())
	}
	tab := newTable("a", "b")
	tab.row("x\ny", "z")
	if lines := strings.Join(tab.lines(), "|"); lines != "a    b|x y  z" {
		t.Errorf("a table is %q", lines)
	}
}
