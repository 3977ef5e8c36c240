package tui

import (
	"strings"
	"testing"
	"unicode"

	"brood/tui/panel"
	"brood/tui/panel/trained"
)

// TestLongClassNames checks that long names are shortened where they are equal.
func TestLongClassNames(t *testing.T) {
	for _, c := range []struct{ names, want string }{
		{"cat dog", "cat dog"},
		{"species_of_bird_robin_v2 species_of_bird_kite_v2 dog", "…robin… …kite… dog"},
		{"photo_of_a_cat photo_of_a_cat_indoors photo_of_a_dog", "…cat …cat_indoors …dog"},
		{"a_very_long_name_alone dog", "a_ver…_alone dog"},
		{"xaaaaaaaaaaaaaaaaaaa1 yaaaaaaaaaaaaaaaaaaa2 xaaaaaaaaaaaaaaaaaaa2", "xaaaa…aaaaa1 yaaaaaaaaaa… xaaaa…aaaaa2"},
		{"größe_der_zelle_ö größe_der_zelle_ü", "…ö …ü"},
		{"eta=0.01821,seed=1 eta=0.01862,seed=1", "…0.01821… …0.01862…"},
		{"0.1→0.05@1331 0.1→0.02@1847", "…0.05@1331 …0.02@1847"},
		{"layer=110,width=20 layer=110,width=30", "…20 …30"},
	} {
		got := panel.Distinct(strings.Fields(c.names), 12)
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %s", c.names, got, c.want)
		}
	}
	var names []string
	for _, n := range strings.Fields("robin wren crow kite") {
		names = append(names, "a_photograph_of_the_species_"+n+"_in_the_wild")
	}
	text := trained.ReportText(reportOf(4, names...), 100, false)
	for _, n := range strings.Fields("…robin… …wren… …crow… …kite…") {
		if strings.Count(text, n) != 3 { // the figures of the class, its row and its column
			t.Errorf("%s is shown %d times:\n%s", n, strings.Count(text, n), text)
		}
	}
	if text := trained.ReportText(reportOf(4, names...), 60, true); strings.ContainsFunc(text,
		func(r rune) bool { return r > unicode.MaxASCII }) {
		t.Errorf("not in ASCII:\n%s", text)
	}
}
