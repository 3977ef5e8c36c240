package host

import (
	"path/filepath"
	"strings"
	"testing"

	"brood/runtime/option"
	"brood/runtime/option/optiontest"
)

// TestToldIsRecorded: an option that is a line of the table and nothing else is in the log; verify and a branch get it
// back, a branch is told another and records that; and a brood without the line refuses the session.
func TestToldIsRecorded(t *testing.T) {
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
	dir, branch := filepath.Join(home, "s"), filepath.Join(home, "branch")
	want := obey(t, Order{Dir: dir, Options: o}, nil) // as another process is given it
	told := func(dir, hand string) {
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
	told(dir, "hand")
	again := Options{By: "fork"}
	if err := tally.Set(&again, "machine"); err != nil {
		t.Fatal(err)
	}
	if got := obey(t, Order{Dir: branch, From: dir, At: 2, Options: again}, nil); got != want {
		t.Errorf("the branch ends as %s, want %s", got, want)
	}
	told(branch, "machine")
	for _, on := range []Order{{Dir: dir, Resume: true, Options: o}, {Dir: filepath.Join(home, "c"), From: dir, At: 2, Options: o}} {
		if _, err := on.Open(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "algorithm = parle cannot be told") {
			t.Errorf("told what a session keeps: %v", err)
		}
	}
	if err := tally.Set(&o, optiontest.Bad); err != nil {
		t.Fatal(err)
	}
	if _, err := Prepare(o); err == nil || !strings.Contains(err.Error(), `tally "no such": choose hand or machine`) {
		t.Errorf("a value that is none: %v", err)
	}
	option.All = was
	if _, err := Verify(t.Context(), dir, 1, nil); err == nil || !strings.Contains(err.Error(), "which this brood does not know") {
		t.Errorf("without the line: %v", err)
	}
}
