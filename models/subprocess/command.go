package subprocess

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/zeebo/blake3"

	"brood/models/usererr"
)

// ParseCommand parses a command line: the path of a program, which may contain spaces, or words separated by spaces.
// Words that are paths of files become absolute, so that the command does not depend on the working directory. It fails
// if the program cannot be executed. flag is the name of the option that has the text, such as "objective".
func ParseCommand(flag, text string) ([]string, error) {
	words := strings.Fields(text)
	if isFile(text) {
		words = []string{text}
	}
	if len(words) == 0 {
		return nil, usererr.Errorf("the %s is empty: give a program, such as --%s ./program", flag, flag)
	}
	for i, w := range words {
		if !isFile(w) || i == 0 && !strings.ContainsRune(w, filepath.Separator) {
			continue
		}
		path, err := filepath.Abs(w)
		if err != nil {
			return nil, err
		}
		words[i] = path
	}
	if _, err := exec.LookPath(words[0]); err != nil {
		return nil, fmt.Errorf("%s %s cannot be started: %w; "+
			"give the path of a program that may be executed, or a command such as \"python3 FILE.py\"",
			flag, words[0], errors.Unwrap(err))
	}
	return words, nil
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}

// Identity returns one comment line for each word of a parsed command: the word, or, of a file, its name and the digest
// of its contents. Commands with equal lines are considered the same program.
func Identity(command []string) (string, error) {
	var b strings.Builder
	for _, w := range command {
		if !filepath.IsAbs(w) || !isFile(w) {
			fmt.Fprintf(&b, "# word %s\n", w)
			continue
		}
		f, err := os.Open(w)
		if err != nil {
			return "", err
		}
		h := blake3.New()
		_, err = io.Copy(h, f)
		if f.Close(); err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "# file %s blake3:%x\n", filepath.Base(w), h.Sum(nil))
	}
	return b.String(), nil
}

// Name returns a command line with each path reduced to its last element, for people to read.
func Name(command []string) string {
	words := make([]string, len(command))
	for i, w := range command {
		words[i] = filepath.Base(w)
	}
	return strings.Join(words, " ")
}

// bare matches words that need no quotes in a shell.
var bare = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// Quote returns a line that a POSIX shell reads as these words.
func Quote(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		if quoted[i] = w; !bare.MatchString(w) {
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}
