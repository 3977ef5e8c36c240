package host

import (
	"path/filepath"
	"strings"
	"testing"

	"brood/runtime/option"
	"brood/runtime/option/optiontest"
)

// TestOptionsAreRecorded: an option that consists only of a line of the table is recorded in the log, and verify and a
// fork read it back. A fork can change it and records the change. A brood without that line rejects the session.
func TestOptionsAreRecorded(t *testing.T) {
	tally, slack := optiontest.Lines()
	was := option.All
	optiontest.Add(t, tally, slack)
	o := tiny(4)
	for x, text := range map[*option.Option]string{tally: "hand", slack: "30"} {
		if err := x.Set(&o, text); err != nil {
			t.Fatal(err)
		}
	}
	home := t.TempDir()
	dir, fork := filepath.Join(home, "s"), filepath.Join(home, "fork")
	want := runOrder(t, Order{Dir: dir, Options: o}, nil) // encoded, as for another process
	check := func(dir, hand string) {
		t.Helper()
		h, err := read(dir, 0)
		if err != nil {
			t.Fatal(err)
		}
		j, err := FromSession(dir, h.config)
		if err != nil {
			t.Fatal(err)
		}
		if tally.Text(j.Options) != hand || slack.Text(j.Options) != "30" {
			t.Errorf("%s: options %v", dir, j.More)
		}
		if v, err := Verify(t.Context(), dir, 1, nil); err != nil || v.Last.Hash != want {
			t.Errorf("%s: %+v, %v", dir, v.Result, err)
		}
	}
	check(dir, "hand")
	again := Options{By: "fork"}
	if err := tally.Set(&again, "machine"); err != nil {
		t.Fatal(err)
	}
	if got := runOrder(t, Order{Dir: fork, From: dir, At: 2, Options: again}, nil); got != want {
		t.Errorf("the fork ends as %s, want %s", got, want)
	}
	check(fork, "machine")
	for _, on := range []Order{{Dir: dir, Resume: true, Options: o},
		{Dir: filepath.Join(home, "c"), From: dir, At: 2, Options: o}} {
		if _, err := on.Open(t.Context(), nil); err == nil ||
			!strings.Contains(err.Error(), "algorithm = parle: a resumed or branched session keeps") {
			t.Errorf("an option that a session keeps: %v", err)
		}
	}
	if err := tally.Set(&o, optiontest.Bad); err != nil {
		t.Fatal(err)
	}
	if _, err := Prepare(o); err == nil || !strings.Contains(err.Error(), `tally "no such": choose hand or machine`) {
		t.Errorf("an invalid value: %v", err)
	}
	option.All = was
	if _, err := Verify(t.Context(), dir, 1, nil); err == nil ||
		!strings.Contains(err.Error(), "which this version of brood lacks") {
		t.Errorf("without the line: %v", err)
	}
}
