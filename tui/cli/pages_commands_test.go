package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"brood/optim/catalog"
	"brood/presets"
)

var (
	spans   = regexp.MustCompile("(?s)`(brood [^`]+)`")
	fences  = regexp.MustCompile("(?s)```[a-z]*\n(.*?)```")
	folds   = regexp.MustCompile(`\s*\\\n\s*`)
	assigns = regexp.MustCompile(`^[A-Z_]+=\S*$`)
	names   = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
)

// TestPagesCommands parses every command of README and docs as the command line does: the command, its flags with their
// values, and the presets and algorithms exist. Words in capitals are placeholders. The scripts test the effects of the
// commands.
func TestPagesCommands(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range commandsOf(string(text)) {
			n++
			if err := readCommand(line); err != nil {
				t.Errorf("%s: %s: %v", filepath.Base(page), line, err)
			}
		}
	}
	if n < 150 {
		t.Errorf("%d commands were found: the pages have more", n)
	}
}

func TestPagesCommandsCanFail(t *testing.T) {
	page := "`brood fly` a `brood run --init` `brood run --algoritm\nparle` b\n```\n$ BROOD_LONG=1 brood run nopreset   " +
		"   trains\nbrood run --rounds x\n" +
		"brood set S eta=1 --why \"a  b\" | tee log\nbrood run --algorithm \\\n  parl\nbrood worker JOIN-URL   # joins\n```\n"
	bad := 0
	lines := commandsOf(page)
	for _, line := range lines {
		if readCommand(line) != nil {
			bad++
		}
	}
	if len(lines) != 8 || bad != 5 {
		t.Errorf("%d commands, %d of them refused, want 8 and 5: %q", len(lines), bad, lines)
	}
}

// commandsOf returns the commands of a page, one string each: lines of fenced blocks up to two spaces or a comment, and
// code spans.
func commandsOf(page string) (out []string) {
	for _, block := range fences.FindAllStringSubmatch(page, -1) {
		for line := range strings.Lines(folds.ReplaceAllString(block[1], " ")) {
			words := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "$ "))
			for len(words) > 0 && assigns.MatchString(words[0]) {
				words = words[1:]
			}
			if len(words) > 1 && (words[0] == "brood" || words[0] == "./brood") {
				line = line[strings.Index(line, words[0]):]
				out = append(out, strings.TrimSpace(line))
			}
		}
	}
	for _, span := range spans.FindAllStringSubmatch(fences.ReplaceAllString(page, ""), -1) {
		out = append(out, strings.Join(strings.Fields(span[1]), " "))
	}
	return out
}

// wordsOf splits a command as a shell does, up to the end of the command: a pipe, a redirection, a comment, or two
// spaces outside of quotes, after which a page describes the command.
func wordsOf(line string) (out []string) {
	var word strings.Builder
	var quote rune
	open := false
	end := func() {
		if open {
			out = append(out, word.String())
			word.Reset()
		}
		open = false
	}
	for i, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, open = r, true
		case quote == 0 && (strings.ContainsRune("|;&>", r) || r == '#' && !open ||
			strings.HasPrefix(line[i:], "  ") && len(out) > 0):
			end()
			return out
		case quote == 0 && r == ' ':
			end()
		default:
			open = true
			word.WriteRune(r)
		}
	}
	end()
	return out
}

// readCommand returns the error of the command line for a command.
func readCommand(line string) error {
	args := wordsOf(line)[1:]
	for i, a := range args {
		if a == "N" { // a number that a person fills in
			args[i] = "1"
		}
	}
	root := newRoot(streams{})
	root.InitDefaultCompletionCmd(args...)
	c, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	// a page may name a flag without its value
	if err := c.ParseFlags(rest); err != nil &&
		!strings.HasPrefix(err.Error(), "flag needs an argument: "+rest[len(rest)-1]) {
		return err
	}
	rest = c.Flags().Args()
	if fl := c.Flags().Lookup("algorithm"); fl != nil && names.MatchString(fl.Value.String()) {
		if _, err := catalog.Lookup(fl.Value.String()); err != nil {
			return err
		}
	}
	switch c.Name() {
	case "run", "serve", "sweep":
		if len(rest) > 0 && names.MatchString(rest[0]) {
			if _, err := presets.Load(rest[0]); err != nil {
				return err
			}
		}
	}
	if c == root && len(rest) > 0 {
		return usage("there is no command %q", rest[0])
	}
	return nil
}
