package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"brood/presets"
	"brood/runtime/option"
	"brood/runtime/sweep"
	"brood/runtime/testutil"
)

// figures returns the values of a metric of the seeds 1, 2, ...
func figures(metric string, values ...float64) map[string]map[int]float64 {
	of := map[int]float64{}
	for i, x := range values {
		of[i+1] = x
	}
	return map[string]map[int]float64{metric: of}
}

// TestJudged: the table has a row for each claim and names missing presets. A full form is not judged.
func TestJudged(t *testing.T) {
	at := func(x float64) *float64 { return &x }
	of := func(name string, claims ...presets.Claim) *study {
		return &study{presets: []presets.Preset{{Name: name, Claims: claims}}}
	}
	w := of("a", presets.Claim{Source: "Table 1", Metric: "test_error", Published: at(0.44), Below: "b"},
		presets.Claim{Source: "Fig. 2", Metric: "bytes_per_eval", AtMost: at(1)})
	all := map[string]sweep.Result{
		// the differences 1, 1.1 and 0.9 are 17.3 standard errors of 0.0577: with two degrees of freedom
		// p = 1 - t/sqrt(t^2 + 2) = 0.0033; three seeds would decide again
		"a": {Seconds: 7, Figures: figures("test_error", 2, 2.1, 1.9)},
		"b": {Figures: figures("test_error", 3, 3.2, 2.8)},
	}
	var out bytes.Buffer
	w.claimTable(w.judgements(all)).write(&out)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || !strings.Contains(lines[1], "0.44") || !strings.Contains(lines[1], "0.058") ||
		!strings.HasSuffix(lines[1],
			"below b            paired t  17.3   2.0  0.0033  0.0033  0.0033      3  –      holds") ||
		!strings.HasSuffix(lines[2], "not measured") {
		t.Errorf("the table is\n%s", out.String())
	}
	if rows := w.claimTable(w.judgements(map[string]sweep.Result{"a": all["a"]})).rows; rows[1][4] != "2" ||
		rows[1][15] != "–" || rows[1][17] != "not measured: b" {
		t.Errorf("without what it is compared with it is judged %q", rows[1])
	}
	w.full = true
	if md := markdown(w.claimTable(w.judgements(all))); strings.Contains(md, "holds") || strings.Contains(md, "at most") ||
		!strings.Contains(md, "| 0.44 | 2 |") {
		t.Errorf("a full form is judged\n%s", md)
	}
	share := of("a", presets.Claim{Source: "Table 2", Metric: "bytes", Published: at(0.5), Ratio: at(0.5), Of: "b"})
	sent := map[string]sweep.Result{"a": {Figures: figures("bytes", 30, 30)}, "b": {Figures: figures("bytes", 60, 60)}}
	if rows := share.claimTable(share.judgements(sent)).rows; rows[1][2] != "ratio of bytes" || rows[1][4] != "0.5" ||
		rows[1][9] != "–" || rows[1][15] != "–" || rows[1][17] != string(presets.Accounting) {
		t.Errorf("a share is judged %q", rows[1])
	}
	theorem := of("c", presets.Claim{
		Source: "theorem",
		Metric: "test_loss",
		Slope:  at(-1),
		Over:   []string{"parle-lenet", "mnist-pesgd", "gossip-popsgd"},
	})
	law := map[string]sweep.Result{"c": {Figures: figures("test_loss", 1)}}
	for name, x := range map[string]float64{"parle-lenet": 1.0 / 3, "mnist-pesgd": 1.0 / 4, "gossip-popsgd": 1.0 / 8} {
		// of 3, 4 and 8 members
		law[name] = sweep.Result{Figures: figures("test_loss", 0.99*x, 1.01*x)}
	}
	if rows := theorem.claimTable(theorem.judgements(law)).rows; rows[1][2] != "slope of test_loss" ||
		!strings.HasPrefix(rows[1][4], "-1") || rows[1][15] != "–" || rows[1][17] != string(presets.Holds) {
		t.Errorf("a law is judged %q", rows[1])
	}
}

// TestSeedsOfAVerdict: an undecided claim names the number of seeds that could decide it, if fewer ran. The tally
// counts both forms as one verdict. A bound of our own is a check. JSON has only the outcome, and the number of seeds.
func TestSeedsOfAVerdict(t *testing.T) {
	three, six := []float64{2, 2.1, 1.9}, []float64{2, 2.1, 1.9, 2, 2.1, 1.9}
	for _, c := range []struct {
		figures              []float64
		bound                float64
		seeds                int
		takes, said, counted string
	}{
		// 0.1 above the mean, with a deviation of 0.1 of three, and of 0.0894 of six
		{three, 2.1, 0, "10", "check not decided", "check not decided"},
		{three, 2.1, 3, "10", "check not decided", "check not decided"},
		{three, 2.1, 4, "10", "check not decided: 4 seeds could decide it", "check not decided"},
		{three, 2.1, 1001, "10", "check not decided: over 1000 seeds could decide it", "check not decided"},
		{six, 2.1, 7, "9", "check met", "check met"},
		{three, 2.001, 0, "over 1000", "check not decided", "check not decided"},
		{three, 9, 5, "2", "check met", "check met"},
		{three[:1], 9, 2, "–", "check not decided: 2 seeds could decide it", "check not decided"},
	} {
		w := &study{presets: []presets.Preset{{Name: "a",
			Claims: []presets.Claim{{Source: "Table 1", Metric: "test_error", AtMost: &c.bound, Seeds: c.seeds}}}}}
		all := map[string]sweep.Result{"a": {Figures: figures("test_error", c.figures...)}}
		row := w.claimTable(w.judgements(all)).rows[1]
		if row[15] != c.takes || row[17] != c.said {
			t.Errorf("%v, at most %g by %d seeds: takes %s, %s; want %s, %s", c.figures, c.bound, c.seeds, row[15], row[17],
				c.takes, c.said)
		}
		if of := presets.Count(w.judgements(all)); of[c.counted] != 1 {
			t.Errorf("%s is counted as %v", c.said, of)
		}
		var out bytes.Buffer
		w.writeJSON(&out, all)
		needed := c.takes
		switch needed {
		case "–":
			needed = "null"
		case "over 1000":
			needed = "1001"
		}
		alone, _, _ := strings.Cut(c.said, ":")
		if text := out.String(); !strings.Contains(text, fmt.Sprintf(`"seeds_needed":%s,`, needed)) ||
			!strings.Contains(text, fmt.Sprintf(`"verdict":"%s"`, alone)) {
			t.Errorf("%s takes %s, as JSON %s", c.said, c.takes, text)
		}
	}
}

// TestEverything: the studies run in sequence, each in a separate directory, and are counted at the end. Studies
// without a preset to run are skipped.
func TestEverything(t *testing.T) {
	madeUp(t)
	f := &reproduceFlags{opts: option.Options{Threads: 1}, plain: true, sessions: t.TempDir()}
	f.batch.seeds, f.batch.jobs = seedsFlag{count: 1, first: 1}, 1
	var out, errs bytes.Buffer
	s := streams{out: &out, err: &errs}
	c := reproduceCommand(s)
	c.SetContext(t.Context())
	all := map[string][]string{"one": {"mean-sgd"}, "two": {"mean-popsgd-2", "mean-sgd"}}
	if err := f.everything(c, all, []string{"one", "two"}, s); err != nil {
		t.Fatal(err)
	}
	tally := regexp.MustCompile(`(?m)^study +stated .*\n(one|two) .*\n(one|two) .*\nall `)
	if text := out.String(); !strings.Contains(text, "study 2 of 2: two\n") || !tally.MatchString(text) {
		t.Errorf("the output is\n%s", text)
	}
	for _, name := range []string{"one/mean-sgd,seed=1", "two/mean-sgd,seed=1", "two/mean-popsgd-2,seed=1"} {
		if _, err := os.Stat(filepath.Join(f.sessions, name)); err != nil {
			t.Error(err)
		}
	}
	out.Reset()
	if err := f.everything(c, map[string][]string{"one": {"mean-sgd"}, "two": {"no-such-preset"}}, []string{"one", "two"},
		s); err == nil || out.Len() > 0 {
		t.Errorf("a study that cannot be run is found after %q: %v", out.String(), err)
	}
	log := filepath.Join(f.sessions, "one/mean-sgd,seed=1/log-000001.brood")
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)/2] ^= 1
	if err := os.WriteFile(log, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if err := f.everything(c, all, []string{"one", "two"}, s); err == nil ||
		!strings.Contains(errs.String(), "brood: one: 1 of 1 run failed") {
		t.Errorf("a study with a damaged log: %v, stderr %q", err, errs.String())
	}
	if text := out.String(); !strings.Contains(text, "\ntwo ") || strings.Contains(text, "\none ") {
		t.Errorf("the tally after a failed study is\n%s", text)
	}
	f.full = true
	if err := f.everything(c, map[string][]string{"ours": {"quickstart"}}, []string{"ours"}, s); err != nil ||
		!strings.Contains(errs.String(), "skipped: the preset quickstart has no full form") {
		t.Errorf("a study without a full form: %v, stderr %q", err, errs.String())
	}
}

// TestBatchEndsAtOnce: an animated view of finished runs ends before it starts.
func TestBatchEndsAtOnce(t *testing.T) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range 50 {
			b := &runs{Batch: &sweep.Batch{}, table: func(int) *table { return newTable("x") }}
			v := newBatchView(b, false, false, streams{screen: io.Discard, terminal: true})
			v.begin()
			v.close()
		}
	}()
	testutil.Receive(t, ended, "end of the view")
}
