package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"brood/presets"
)

// TestPageKeepsProse: the table and the command of a study are replaced, the text around them remains, the tally is
// updated, and line ends are preserved. A study without a section is appended.
func TestPageKeepsProse(t *testing.T) {
	verdict := func(v presets.Verdict, below string) []presets.Judgement {
		return []presets.Judgement{{Finding: presets.Finding{Verdict: v}, Claim: presets.Claim{Below: below}}}
	}
	file := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(file, []byte("# Page\n\nBefore.\n\n## All studies\n\nCounted.\n\n"+updateTally("", "parle", verdict(presets.Holds, ""))+
		"\n## parle\n\n`brood reproduce parle --seeds 3`, 2026-01-01: on a laptop.\n\n| old |\n| --- |\n| 1 |\n\n**Why.** Prose.\n\n## Out of reach\n\n| a |\n| --- |\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &reproduceFlags{file: file}
	parts := []part{{study: "parle", heading: "parle", command: "`brood reproduce parle --seeds 5`, 2026-02-02", table: "| new |\n| --- |\n", claims: verdict(presets.Contradicts, "")},
		{study: "ars", heading: "ars", command: "`brood reproduce ars --seeds 5`, 2026-02-02", table: "| ars |\n| --- |\n", claims: verdict(presets.Holds, "sgd")}}
	if err := f.write(parts, false); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := "# Page\n\nBefore.\n\n## All studies\n\nCounted.\n\n" +
		"| study | claims | holds as an order | holds within a margin | holds by a bound | contradicts | not decided | not measured | accounting |\n" +
		"| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n" +
		"| ars | 1 | 1 | 0 | 0 | 0 | 0 | 0 | 0 |\n| parle | 1 | 0 | 0 | 0 | 1 | 0 | 0 | 0 |\n| all | 2 | 1 | 0 | 0 | 1 | 0 | 0 | 0 |\n" +
		"\n## parle\n\n`brood reproduce parle --seeds 5`, 2026-02-02: on a laptop.\n\n| new |\n| --- |\n\n**Why.** Prose.\n" +
		"\n## Out of reach\n\n| a |\n| --- |\n" +
		"\n## ars\n\n`brood reproduce ars --seeds 5`, 2026-02-02\n\n| ars |\n| --- |\n"
	if string(text) != want {
		t.Errorf("the page is\n%s\nwant\n%s", text, want)
	}
	if err := f.write(parts, false); err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(file); err != nil || string(again) != want {
		t.Errorf("written once more it is\n%s, %v", again, err)
	}
	crlf := strings.ReplaceAll(want, "\n", "\r\n")
	if err := os.WriteFile(file, []byte(crlf), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.write(parts, false); err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(file); err != nil || string(again) != crlf {
		t.Errorf("a page whose lines end with CRLF is\n%q, %v", again, err)
	}
}

// TestPartOfAStudy: a full form or a part of a study has a separate heading, and is not counted.
func TestPartOfAStudy(t *testing.T) {
	for _, c := range []struct {
		f             reproduceFlags
		heading, says string
		counted       bool
	}{
		{reproduceFlags{}, "ours", "`brood reproduce ours --seeds 4`", true},
		{reproduceFlags{full: true}, "ours, in full", "`brood reproduce ours --seeds 4 --full`", false},
		{reproduceFlags{only: []string{"a", "b"}}, "ours: a, b", "`brood reproduce ours --seeds 4 --preset a --preset b`", false},
	} {
		at := 1.0
		w := &study{name: "ours", seeds: 4, full: c.f.full, presets: []presets.Preset{{Name: "a", Claims: []presets.Claim{{Metric: "test_error", AtMost: &at}}}}}
		w.runs = newRuns("study", batchFlags{}, c.f.opts)
		p := c.f.newPart(w)
		if p.heading != c.heading || !strings.HasPrefix(p.command, c.says+", 20") || (p.claims != nil) != c.counted {
			t.Errorf("the part is %+v, want %q made by %s", p, c.heading, c.says)
		}
	}
}
