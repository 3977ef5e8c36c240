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

	"brood/presets"
)

// part is the section of a study in a document: a heading, the command that generated the table, and the table.
type part struct {
	study, heading, command, table string
	claims                         []presets.Judgement // nil in the full form, or if --preset selects some of the presets
}

// tallyHeading is the heading of the section with the tally over all studies.
const tallyHeading = "All studies"

var (
	tableOf   = regexp.MustCompile(`(?m)(?:^\|.*\n)+`)
	commandOf = regexp.MustCompile("`brood reproduce [^`]*`, [0-9]{4}-[0-9]{2}-[0-9]{2}")
)

// newPart returns the section of a study that has run, with today's date.
func (f *reproduceFlags) newPart(w *study) part {
	p := part{
		study:   w.name,
		heading: w.name,
		command: fmt.Sprintf("brood reproduce %s --seeds %d", w.name, w.seeds),
		table:   w.pageTable(w.measured()).markdown(),
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

// section returns the byte range of the section with this heading, which includes the heading. It returns -1, -1 if the
// text has no such section.
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

// mergeInto returns the document text with the part in it. If text has a section with the heading of the part, it
// replaces the command and the table there and preserves the text around them; otherwise it appends a section.
func (p part) mergeInto(text string) string {
	fresh := fmt.Sprintf("## %s\n\n%s\n\n%s", p.heading, p.command, p.table)
	from, to := section(text, p.heading)
	if from < 0 {
		if text != "" && !strings.HasSuffix(text, "\n\n") {
			text = strings.TrimRight(text, "\n") + "\n\n"
		}
		return text + fresh
	}
	old := text[from:to]
	at := tableOf.FindStringIndex(old)
	if at == nil {
		return text[:from] + fresh + strings.TrimPrefix(old, "## "+p.heading+"\n") + text[to:]
	}
	old = old[:at[0]] + p.table + old[at[1]:]
	if at := commandOf.FindStringIndex(old); at != nil {
		old = old[:at[0]] + p.command + old[at[1]:]
	}
	return text[:from] + old + text[to:]
}

// updateTally returns the Markdown tally table with the row of study counted again from claims and the total
// recomputed. Other rows keep their counts. Rows are sorted by study name.
func updateTally(table, study string, claims []presets.Judgement) string {
	studies := map[string]map[string]int{study: presets.Count(claims)}
	rows := strings.Split(strings.TrimSpace(table), "\n")
	for _, row := range rows[min(2, len(rows)):] {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		if name := cells[0]; name != study && name != sumRow && len(cells) == 2+len(presets.Outcomes) {
			studies[name] = map[string]int{}
			for i, v := range presets.Outcomes {
				studies[name][v], _ = strconv.Atoi(cells[2+i])
			}
		}
	}
	t := newTally()
	for _, name := range slices.Sorted(maps.Keys(studies)) {
		t.add(name, studies[name])
	}
	return t.withTotal().markdown()
}

// write merges the parts into the document of -o, and does nothing without -o. The document keeps its line ends. If all
// is set, the parts cover all studies, and it adds a missing tally section at the top.
func (f *reproduceFlags) write(parts []part, all bool) error {
	if f.file == "" || len(parts) == 0 {
		return nil
	}
	old, err := os.ReadFile(f.file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write the table: %w", err)
	}
	text, ends := string(old), "\n"
	if strings.Contains(text, "\r\n") {
		text, ends = strings.ReplaceAll(text, "\r\n", "\n"), "\r\n"
	}
	if from, _ := section(text, tallyHeading); from < 0 && all && !f.full {
		text = fmt.Sprintf("## %s\n\n%s\n%s", tallyHeading, newTally().withTotal().markdown(), text)
	}
	for _, p := range parts {
		text = p.mergeInto(text)
		from, to := section(text, tallyHeading)
		if from < 0 || p.claims == nil {
			continue
		}
		if at := tableOf.FindStringIndex(text[from:to]); at != nil {
			text = text[:from+at[0]] + updateTally(text[from+at[0]:from+at[1]], p.study, p.claims) + text[from+at[1]:]
		}
	}
	if err := os.WriteFile(f.file, []byte(strings.ReplaceAll(text, "\n", ends)), 0o644); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}

// writeRows writes the runs of a study as CSV, a row each, into the directory f.results. It does nothing if that is
// empty.
func (f *reproduceFlags) writeRows(w *study) error {
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
