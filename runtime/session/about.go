package session

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"brood/models/usererr"
)

// About holds a user's annotations of a session: the file about.json in its directory. They are not part of the log and
// do not influence the run.
type About struct {
	Name string   `json:"name,omitempty"` // title that is shown instead of the name of the directory
	Tags []string `json:"tags,omitempty"` // words without blanks, each once
	Note string   `json:"note,omitempty"`

	Rounds []RoundNote `json:"rounds,omitempty"` // ascending, each round once
}

// RoundNote is a user's note on a round.
type RoundNote struct {
	Round uint64 `json:"round"`
	Text  string `json:"text"`
}

// AboutName is the name of the file.
const AboutName = "about.json"

const (
	maxNamed      = 60   // characters of a title
	maxTag        = 24   // characters of a tag
	maxTags       = 16   // number of tags
	maxNote       = 1000 // characters of the note on a session
	maxRoundNote  = 200  // characters of the note on a round
	maxRoundNotes = 200  // number of notes on rounds
)

// ReadAbout returns the annotations of the session in dir. It returns the zero About if there are none or if the file
// cannot be read or is invalid.
func ReadAbout(dir string) (a About) {
	f, err := openRegular(filepath.Join(dir, AboutName))
	if err != nil {
		return a
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 512<<10))
	if err != nil || json.Unmarshal(text, &a) != nil || a.Check() != nil {
		return About{}
	}
	return a
}

// Check returns an error if a text is too long or has characters that cannot be shown, if a tag is not a single word,
// or if the notes on rounds are not in ascending order.
func (a About) Check() error {
	plain := func(what, text string, most int) error {
		switch {
		case utf8.RuneCountInString(text) > most:
			return usererr.Errorf("the %s has %d characters: write %d at most", what, utf8.RuneCountInString(text), most)
		case !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
			return usererr.Errorf("the %s %q has characters that cannot be shown: write text on one line", what, text)
		}
		return nil
	}
	err := errors.Join(plain("name", a.Name, maxNamed), plain("note", a.Note, maxNote))
	for _, t := range a.Tags {
		err = errors.Join(err, plain("tag", t, maxTag))
		if t == "" || strings.ContainsFunc(t, unicode.IsSpace) {
			err = errors.Join(err, usererr.Errorf("the tag %q is no word", t))
		}
	}
	if len(a.Tags) > maxTags {
		err = errors.Join(err, usererr.Errorf("%d tags are too many: write %d at most", len(a.Tags), maxTags))
	}
	for i, n := range a.Rounds {
		err = errors.Join(err, plain("note", n.Text, maxRoundNote))
		if i > 0 && n.Round <= a.Rounds[i-1].Round {
			err = errors.Join(err, usererr.Errorf("the notes of round %d are out of order", n.Round))
		}
	}
	if len(a.Rounds) > maxRoundNotes {
		err = errors.Join(err,
			usererr.Errorf("%d notes on rounds are too many: write %d at most", len(a.Rounds), maxRoundNotes))
	}
	return err
}

// Noted returns a copy of a with the given note on a round; an empty text removes the note. a does not change.
func (a About) Noted(round uint64, text string) About {
	a.Rounds = slices.DeleteFunc(slices.Clone(a.Rounds), func(n RoundNote) bool { return n.Round == round })
	if text = strings.TrimSpace(text); text != "" {
		at, _ := slices.BinarySearchFunc(a.Rounds, round, func(n RoundNote, r uint64) int {
			return cmp.Compare(n.Round, r)
		})
		a.Rounds = slices.Insert(a.Rounds, at, RoundNote{round, text})
	}
	return a
}

// Write stores the annotations in the directory of a session, atomically. It removes the file if a is empty. It returns
// an error if a is invalid or dir has no log.
func (a About) Write(dir string) error {
	if !holdsLog(dir) {
		return noLog(dir)
	}
	a.Name, a.Note, a.Tags = strings.TrimSpace(a.Name), strings.TrimSpace(a.Note), slices.Clone(a.Tags)
	slices.Sort(a.Tags)
	a.Tags = slices.Compact(a.Tags)
	if err := a.Check(); err != nil {
		return err
	}
	path := filepath.Join(dir, AboutName)
	if a.Name == "" && a.Note == "" && len(a.Tags) == 0 && len(a.Rounds) == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("session: %w", err)
		}
		return nil
	}
	text, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return err
	}
	if err := WriteFile(path, ".about-", append(text, '\n')); err != nil {
		return fmt.Errorf("session: %w", err)
	}
	return nil
}
