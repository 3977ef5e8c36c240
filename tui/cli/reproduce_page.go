package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// part is what a document has of a study: a heading, the command that made the table, and the table.
type part struct {
	study, heading, command, table string
	claims                         []judgement // nil where they are not judged, or not all
}

// tallied is the heading of the counts over all studies.
const tallied = "All studies"

var (
	tableOf   = regexp.MustCompile(`(?m)(?:^\|.*\n)+`)
	commandOf = regexp.MustCompile("`brood reproduce [^`]*`, [0-9]{4}-[0-9]{2}-[0-9]{2}")
)

// newPart is a study that has been run.
func (f *reproduceFlags) newPart(w *study) part {
	p := part{
		study:   w.name,
		heading: w.name,
		command: fmt.Sprintf("brood reproduce %s --seeds %d", w.name, w.seeds),
		table:   w.judged(w.measured()).markdown(),
	}
	if f.full {
		p.heading, p.command = p.heading+", in full", p.command+" --full"
	}
	if len(f.only) > 0 {
		p.heading, p.command = p.heading+": "+strings.Join(f.only, ", "),
			p.command+" --preset "+strings.Join(f.only, " --preset ")
	}
	if !f.full && len(f.only) == 0 {
		p.claims = w.judgements(w.measured())
	}
	p.command = fmt.Sprintf("`%s`, %s", p.command, time.Now().Format(time.DateOnly))
	return p
}

// section is where the part of a document below a heading lies, with the heading; -1 where it has none.
func section(text, heading string) (from, to int) {
	from = strings.Index("\n"+text, "\n## "+heading+"\n")
	if from < 0 {
		return -1, -1
	}
	if next := strings.Index(text[from:], "\n## "); next >= 0 {
		return from, from + next + 1
	}
	return from, len(text)
}

// into puts the part into a document: in place of the command and the table that stand below its heading, so that what
// was written around them stays; else at the end.
func (p part) into(text string) string {
	own := fmt.Sprintf("## %s\n\n%s\n\n%s", p.heading, p.command, p.table)
	from, to := section(text, p.heading)
	if from < 0 {
		if text != "" && !strings.HasSuffix(text, "\n\n") {
			text = strings.TrimRight(text, "\n") + "\n\n"
		}
		return text + own
	}
	was := text[from:to]
	at := tableOf.FindStringIndex(was)
	if at == nil {
		return text[:from] + own + strings.TrimPrefix(was, "## "+p.heading+"\n") + text[to:]
	}
	was = was[:at[0]] + p.table + was[at[1]:]
	if at := commandOf.FindStringIndex(was); at != nil {
		was = was[:at[0]] + p.command + was[at[1]:]
	}
	return text[:from] + was + text[to:]
}

// recounted is the table of all studies with one of them counted anew.
func recounted(table, study string, claims []judgement) string {
	studies := map[string]map[string]int{study: verdictsOf(claims)}
	rows := strings.Split(strings.TrimSpace(table), "\n")
	for _, row := range rows[min(2, len(rows)):] {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		if name := cells[0]; name != study && name != sumRow && len(cells) == 2+len(verdicts) {
			studies[name] = map[string]int{}
			for i, v := range verdicts {
				studies[name][v], _ = strconv.Atoi(cells[2+i])
			}
		}
	}
	t := newTally()
	for _, name := range slices.Sorted(maps.Keys(studies)) {
		t.add(name, studies[name])
	}
	return t.whole().markdown()
}

// write puts the studies into the document that is asked for; whole says that they are all of them.
func (f *reproduceFlags) write(parts []part, whole bool) error {
	if f.file == "" || len(parts) == 0 {
		return nil
	}
	was, err := os.ReadFile(f.file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write the table: %w", err)
	}
	text, ends := string(was), "\n"
	if strings.Contains(text, "\r\n") { // as the document ends its lines
		text, ends = strings.ReplaceAll(text, "\r\n", "\n"), "\r\n"
	}
	if from, _ := section(text, tallied); from < 0 && whole && !f.full {
		text = fmt.Sprintf("## %s\n\n%s\n%s", tallied, newTally().whole().markdown(), text)
	}
	for _, p := range parts {
		text = p.into(text)
		from, to := section(text, tallied)
		if from < 0 || p.claims == nil {
			continue
		}
		if at := tableOf.FindStringIndex(text[from:to]); at != nil {
			text = text[:from+at[0]] + recounted(text[from+at[0]:from+at[1]], p.study, p.claims) + text[from+at[1]:]
		}
	}
	if err := os.WriteFile(f.file, []byte(strings.ReplaceAll(text, "\n", ends)), 0o644); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}

// keepRows writes the runs of a study, a row each, where they are asked for.
func (f *reproduceFlags) keepRows(w *study) error {
	if f.results == "" {
		return nil
	}
	err := os.MkdirAll(f.results, 0o755)
	if err == nil {
		name := strings.TrimSuffix(filepath.Base(w.name), ".toml") + ".csv"
		err = os.WriteFile(filepath.Join(f.results, name), w.Rows(), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}
