package data

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// visits is a table of 120 rows: row i is of day i*7 modulo 30 and of site i/10.
func visits(t *testing.T) string {
	var b strings.Builder
	b.WriteString("day,site,flat,x,class\n")
	for i := range 120 {
		fmt.Fprintf(&b, "2026-03-%02d,s%d,1,%d.5,%s\n", 1+i*7%30, i/10, i*31%17, "ab"[i%2:i%2+1])
	}
	return filepath.Join(put(t, map[string][]byte{"visits.csv": []byte(b.String())}), "visits.csv")
}

// cellsBySplit returns the distinct values of f, of the rows of each split.
func cellsBySplit(t *testing.T, s *Set, f func(row int) int) map[string][]int {
	t.Helper()
	rows, err := s.Rows()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]int{}
	for i, r := range rows {
		if r.Row != i+1 || filepath.Base(r.File) != "visits.csv" {
			t.Fatalf("row %d is %+v", i+1, r)
		}
		out[r.Split] = append(out[r.Split], f(i))
	}
	for split, all := range out {
		slices.Sort(all)
		out[split] = slices.Compact(all)
	}
	return out
}

// TestSplitByTime: the last days are test samples, those before them validation samples, and a day is in one split.
func TestSplitByTime(t *testing.T) {
	r := Reading{SplitBy: SplitBy{Time: true, Column: "day"}, Drop: "site,flat"}
	s, err := r.Load(visits(t))
	if err != nil {
		t.Fatal(err)
	}
	day := func(row int) int { return 1 + row*7%30 }
	days := cellsBySplit(t, s, day)
	if v := days["validation"]; v[0] != 24 || v[len(v)-1] != 25 || days["test"][0] != 26 || days["train"][22] != 23 {
		t.Errorf("days by split: %v", days)
	}
	if s.Form().Features[0] != "x" || s.Features() != 1 {
		t.Errorf("features %v", s.Form().Features)
	}
	if s, err = s.WithValidation(40); err != nil || len(s.Validation()) != 40 ||
		cellsBySplit(t, s, day)["validation"][0] != 16 {
		t.Errorf("40 validation samples: %d, %v", len(s.Validation()), err)
	}
	r.Features, r.Drop, r.SplitBy.Column = "x,flat", "", "x"
	if s, err = r.Load(visits(t)); err != nil || s.Features() != 2 {
		t.Errorf("a column that splits and is a feature: %v", err)
	}
}

// TestSplitByGroup: no site is in two splits, whatever the order of the lines, and the digest covers the groups.
func TestSplitByGroup(t *testing.T) {
	r := Reading{SplitBy: SplitBy{Column: "site"}, Drop: "day,flat"}
	path := visits(t)
	s, err := r.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	sites := cellsBySplit(t, s, func(row int) int { return row / 10 })
	if len(sites["test"]) != 2 || len(sites["validation"]) != 1 || len(sites["train"]) != 9 {
		t.Errorf("sites by split: %v", sites)
	}
	if all := slices.Sorted(slices.Values(slices.Concat(sites["train"], sites["validation"], sites["test"]))); len(
		slices.Compact(all)) != 12 {
		t.Errorf("a site is in two splits: %v", sites)
	}
	again, err := Reading{SplitBy: r.SplitBy, Form: new(s.Form())}.Load(path)
	if err != nil || !slices.Equal(again.Validation(), s.Validation()) || again.Digest() != s.Digest() {
		t.Errorf("read with the form of the model: %v", err)
	}
	whole, err := Reading{SplitBy: r.SplitBy, Form: new(s.Form()), Undivided: true}.Load(path)
	if err != nil || len(whole.Train()) != 120 {
		t.Errorf("undivided: %v", err)
	}
	plain, err := Reading{Drop: "day,flat,site"}.Load(path)
	if err != nil || plain.Digest() == s.Digest() {
		t.Errorf("single samples have the digest of groups, %v", err)
	}
}

// TestSplitByRefused: a column that cannot divide the samples is named in one sentence.
func TestSplitByRefused(t *testing.T) {
	for text, want := range map[string]string{
		"time:date":  `has no column "date"`,
		"group:flat": "has one value in all lines",
		"group:half": "has 2 different values in this column, and the splits need 3",
		"time:site":  `line 2: "s0" is no time`,
		"time:mixed": `line 3: "2026-03-01" is no time as in the other lines`,
		"time:class": "the column holds the labels",
		"time:gap":   `line 2, column "gap": the value is missing`,
		"day":        "write time:COLUMN or group:COLUMN",
		"time:":      "write time:COLUMN or group:COLUMN",
	} {
		by, err := ParseSplitBy(text)
		if err == nil {
			var b strings.Builder
			b.WriteString("site,flat,half,mixed,gap,x,class\n")
			for i := range 24 {
				fmt.Fprintf(&b, "s%d,1,%d,%s,%s,%d,%s\n", i, i%2, []string{"7", "2026-03-01"}[i%2], []string{"", "3"}[i%2], i*5%7,
					"ab"[i%2:i%2+1])
			}
			path := filepath.Join(put(t, map[string][]byte{"t.csv": []byte(b.String())}), "t.csv")
			_, err = Reading{SplitBy: by, Features: "x"}.Load(path)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	marked := put(t, map[string][]byte{"train.csv": []byte(strings.Repeat("1,2,a\n3,4,b\n", 9)),
		"val.csv": []byte("1,2,a\n3,4,b\n"), "test.csv": []byte("1,2,a\n3,4,b\n")})
	if _, err := (Reading{SplitBy: SplitBy{Column: "x"}}).Load(marked); err == nil ||
		!strings.Contains(err.Error(), "has no line of names") {
		t.Errorf("a table without names: %v", err)
	}
	if _, err := (Reading{SplitBy: SplitBy{Column: "x"}}).Load("glyphs"); err == nil ||
		!strings.Contains(err.Error(), "split-by group:x: data glyphs has no columns") {
		t.Errorf("data without columns: %v", err)
	}
}

// TestTake: whole groups come as near to the share as they can, and one of each kind remains.
func TestTake(t *testing.T) {
	count := func(by SplitBy, share float64, sizes ...int) (taken []int) {
		var turns []int32
		for t, n := range sizes {
			turns = append(turns, slices.Repeat([]int32{int32(t)}, n)...)
		}
		taken = make([]int, len(sizes))
		for i, yes := range by.take(turns, share) {
			if yes {
				taken[turns[i]]++
			}
		}
		return taken
	}
	group, last := SplitBy{}, SplitBy{Time: true}
	for _, c := range []struct {
		by    SplitBy
		share float64
		sizes []int
		want  []int
	}{
		{group, 0.2, []int{10, 10, 10, 10, 10}, []int{10, 0, 0, 0, 0}},
		{group, 0.2, []int{80, 5, 12, 3}, []int{0, 5, 12, 3}},
		{group, 0.01, []int{80, 5, 12, 3}, []int{0, 0, 0, 3}},
		{group, 0.9, []int{50, 50}, []int{50, 0}},
		{last, 0.2, []int{30, 50, 20}, []int{30, 0, 0}},
		{last, 0.2, []int{60, 20, 20}, []int{60, 0, 0}},
		{last, 0.2, []int{5, 50, 10, 35}, []int{5, 0, 0, 0}},
		{last, 0.99, []int{40, 40, 20}, []int{40, 40, 0}},
	} {
		if got := count(c.by, c.share, c.sizes...); !slices.Equal(got, c.want) {
			t.Errorf("%+v of %v by time %t: took %v, want %v", c.share, c.sizes, c.by.Time, got, c.want)
		}
	}
}
