package archive

import (
	"fmt"
	"strings"
	"testing"

	"brood/runtime/event"
)

// TestNoBestOfUnequalWork: runs with different amounts of work have no best time or traffic: a run of ten rounds is not
// faster than one of a hundred. Their results and speeds are still compared.
func TestNoBestOfUnequalWork(t *testing.T) {
	made := func(rounds uint64, nanos, sent int64, of func(*event.Progress)) *Run {
		m := begin(1, nil)
		m.rounds(rounds)
		for _, r := range m.out {
			if r.Commit != nil {
				r.Commit.Nanos, r.Commit.Sent["sum"] = nanos, sent
				if of != nil {
					of(&r.Commit.Progress)
				}
			}
		}
		return m.run(t, fmt.Sprint(rounds, nanos))
	}
	slow, short := made(100, 5e8, 200, nil), made(10, 4e8, 100, nil)
	for name, want := range map[string]int{"seconds": 0, "bytes": 0, "train_loss": 1, "samples_per_s": 1} {
		m := Metric{Name: name, More: name == "samples_per_s"}
		if best := Best([]*Run{slow, short}, m); len(best) != want {
			t.Errorf("of unequal work %d runs are the best by %s, want %d", len(best), name, want)
		}
	}
	if why := Unequal([]*Run{slow, short}); !strings.Contains(why, "0.1 to 1 epochs") {
		t.Errorf("the reason is %q", why)
	}
	// the same epochs in half the rounds, as with a larger batch, are equal work; twice the members are not
	batch := made(50, 6e8, 100, func(p *event.Progress) { p.Samples *= 2; p.Epochs *= 2 })
	if best := Best([]*Run{slow, batch}, Metric{Name: "seconds"}); len(best) != 1 || best[0] != batch {
		t.Errorf("of equal work the fastest are %v", best)
	}
	members := made(100, 1e8, 100, func(p *event.Progress) { p.Samples *= 2 })
	if best := Best([]*Run{slow, members}, Metric{Name: "seconds"}); best != nil {
		t.Errorf("of twice the samples the fastest are %v", best)
	}
	// a run that exceeds its limit by a fraction of a round did equal work
	over := made(100, 1e8, 100, func(p *event.Progress) { p.Samples += p.Samples / 200 })
	if best := Best([]*Run{slow, over}, Metric{Name: "seconds"}); len(best) != 1 || best[0] != over {
		t.Errorf("of nearly equal work the fastest are %v", best)
	}
}

// TestFirstToATarget: runs that met the same target are compared by their costs, however many rounds they took.
func TestFirstToATarget(t *testing.T) {
	made := func(rounds uint64, target string, loss float64) *Run {
		m := begin(1, func(c *event.Config) { c.Limit = event.Limit{Target: target} })
		m.rounds(rounds)
		m.put(event.Record{Evaluation: &event.Evaluation{Round: rounds, TestError: loss}})
		return m.run(t, fmt.Sprint(rounds))
	}
	far, near := made(100, "test_error=3", 2.9), made(40, "test_error=3", 2.5)
	if best := Best([]*Run{far, near}, Metric{Name: "seconds"}); len(best) != 1 || best[0] != near {
		t.Errorf("the first to meet the target are %v", best)
	}
	for name, other := range map[string]*Run{"missed": made(40, "test_error=3", 4),
		"another": made(40, "test_error=5", 4)} {
		if best := Best([]*Run{far, other}, Metric{Name: "seconds"}); best != nil {
			t.Errorf("%s: the first to meet the target are %v", name, best)
		}
	}
}

// TestNoBestOfUnlikeResults: results on other data or with another loss are not ranked.
func TestNoBestOfUnlikeResults(t *testing.T) {
	made := func(edit func(*event.Config)) *Run {
		m := begin(1, edit)
		m.rounds(100)
		m.put(event.Record{Evaluation: &event.Evaluation{Round: 100, TestError: float64(len(m.out)),
			TestLoss: float64(len(m.out))}})
		m.rounds(1)
		return m.run(t, "")
	}
	digits := made(func(c *event.Config) { c.Digest = "blake3:1" })
	for name, c := range map[string]struct {
		edit func(*event.Config)
		why  string
	}{
		"same":         {func(c *event.Config) { c.Digest, c.Loss = "blake3:1", "cross-entropy" }, ""},
		"unknown data": {func(c *event.Config) {}, ""},
		"other data":   {func(c *event.Config) { c.Digest = "blake3:2" }, "data"},
		"a regression": {func(c *event.Config) {
			c.Digest, c.Loss, c.Targets = "blake3:1", "mse", &event.Targets{Deviation: []float32{2}}
		}, "losses"},
		"from an object": {func(c *event.Config) { c.Digest, c.Loss = "blake3:1", "distance" }, "losses"},
	} {
		runs := []*Run{digits, made(c.edit)}
		runs[1].Figures["test_loss"]++
		if why := Unlike(runs); (why == "") != (c.why == "") || !strings.Contains(why, c.why) {
			t.Errorf("%s: %q", name, why)
		}
		if best := Best(runs, Metric{Name: "test_loss"}); (len(best) == 1) != (c.why == "") {
			t.Errorf("%s: %d are the best by their loss", name, len(best))
		}
	}
	if why := Unlike([]*Run{made(func(c *event.Config) { c.Loss = "mse" }),
		made(func(c *event.Config) { c.Loss = "huber" })}); why == "" {
		t.Error("losses of two kinds are ranked")
	}
}
