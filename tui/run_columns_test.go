package tui

import (
	"strings"
	"testing"

	"brood/runtime/archive"
	"brood/runtime/session"
	"brood/tui/cell"
	"brood/tui/panel"
)

// TestRunColumns checks that columns are as wide as their texts, that long texts stay different, and which columns
// a narrow table keeps.
func TestRunColumns(t *testing.T) {
	row := func(name, eta string) archive.Row {
		return archive.Row{Entry: archive.Entry{Name: name}, Summary: &archive.Summary{Info: session.Info{Algorithm: "parle",
			Model: "a-model-with-a-very-long-name-" + name}, Settings: []archive.Setting{{Name: "eta", Value: eta}}}}
	}
	rows := []archive.Row{row("a", "0.1"), row("b", "cosine:0.1..0.001@+200"), row("c", "exp:100*0.9988372093/round..1"),
		row("d", "0.1 → 0.2 @300 → 0.05 @1331"), row("e", "0.1 → 0.05 @20 → cosine:0.05..0.001@+200 @2000"),
		{Entry: archive.Entry{Name: "unread"}}}
	texts := map[string]string{}
	var kept []string
	rows[1].About.Tags = []string{"best"} // one run has a tag: the column is not uniform, as that of the algorithm is
	columns := panel.RunColumns(archive.Chosen(nil, rows), rows, 120)
	for _, c := range columns {
		for _, r := range rows {
			if text := c.Text(r); cell.Width(text) > c.Width || cell.Width(c.Title) > c.Width {
				t.Errorf("%s of %d cells has %q", c.Name, c.Width, text)
			}
			texts[c.Name] += "|" + c.Text(r)
		}
	}
	if got := texts["eta"]; got != "|0.1|cosine:0.1..0.001…|exp:100..1…|→ 0.05 @1331|→ cosine:…|" {
		t.Errorf("eta is %s", got)
	}
	if got := texts["model"]; got != "|…a|…b|…c|…d|…e|" {
		t.Errorf("the models are %s", got)
	}
	weight := map[string]int{}
	for _, c := range columns {
		weight[c.Name] = c.Weight
	}
	if weight["tag"] < 0 || weight["algorithm"] > 0 {
		t.Errorf("the weights are %v", weight)
	}
	if _, some := texts["test"]; some {
		t.Error("a column without a value is shown")
	}
	// A wide column that does not fit hides no narrower one of less weight.
	fits, name := panel.FitColumns([]panel.Column[int]{{Name: "wide", Width: 30, Weight: 2},
		{Name: "least", Width: 5, Weight: 1},
		{Name: "most", Width: 10, Weight: 3}}, 40, 10, 99)
	for _, c := range fits {
		kept = append(kept, c.Name)
	}
	if got := strings.Join(kept, " "); got != "least most" || name != 40-5-10-4 {
		t.Errorf("a narrow table has %s and %d cells for the name", got, name)
	}
}
