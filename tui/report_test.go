package tui

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"brood/runtime/report"
	"brood/tui/panel/trained"
)

// examinerLibrary is a shelf with an Examiner.
type examinerLibrary struct {
	*fakeLibrary
	ask func(ctx context.Context, at uint64) (*trained.Examined, error)
}

func (e *examinerLibrary) Examine(ctx context.Context, _ string, at uint64, _ func(uint64)) (*trained.Examined, error) {
	return e.ask(ctx, at)
}

// reportOf returns a report of n classes; each is taken for the next one in one of five samples, with probability 0.9.
// Classes without a name are k0, k1, ...
func reportOf(classes int, names ...string) *report.Report {
	t := report.New(classes, classes, false)
	for i := range 10 * classes {
		p := make([]float64, classes)
		is, as := i%classes, i%classes
		if i/classes%5 == 0 {
			as = (is + 1) % classes
		}
		p[as], p[(as+1)%classes] = 0.9, 0.1
		t.AddClass(p, is)
	}
	return t.Report(func(c int) string {
		if names != nil {
			return names[c]
		}
		return fmt.Sprintf("k%d", c)
	})
}

// TestEvaluationOnRequest checks that an evaluation starts only on request, for the newest checkpoint or the round of
// the cursor.
func TestEvaluationOnRequest(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 36}, {200, 50}} {
		d, s := openTraining(t, size[0], size[1], "")
		var asked []uint64
		var fault error
		d.Opt.Library = &examinerLibrary{s, func(_ context.Context, at uint64) (*trained.Examined, error) {
			asked = append(asked, at)
			return &trained.Examined{Round: max(at, 63), Report: reportOf(4)}, fault
		}}
		d.press("w")
		d.shows("enter evaluates the model on the test set")
		if len(asked) > 0 {
			t.Fatalf("without a request it evaluates %v", asked)
		}
		d.press("enter")
		d.shows("round 63", "confusion matrix", "▒  2", "calibration error 10.00 %", "k3", "precision")
		if size[0] == 80 {
			d.shows("probability samples expected   right │")
		}
		d.press("left", "enter")
		if len(asked) != 2 || asked[0] != 0 || asked[1] == 0 {
			t.Errorf("evaluated after the rounds %v", asked)
		}
		// the result is stored whatever round is shown meanwhile
		d.Update(keyMsg("enter"))
		ask := d.last
		d.Feed.Gen++ // as a seek does
		d.deliver(ask())
		d.hides("evaluating")
		if len(asked) != 3 {
			t.Errorf("evaluated after the rounds %v", asked)
		}
		fault = errors.New("the disk is gone")
		d.press("enter")
		d.shows("the disk is gone", "calibration error 10.00 %") // the last result stays
		d.press("esc")
		d.shows("loss")
	}
}

// TestReportsFit checks that reports of any number of classes fit any panel and have their titles.
func TestReportsFit(t *testing.T) {
	for _, classes := range []int{2, 3, 10, 12, 13, 40, 300} {
		for _, width := range []int{60, 100, 160} {
			text := trained.ReportText(reportOf(classes), width, false)
			for _, line := range strings.Split(text, "\n") {
				if n := len([]rune(line)); n > width {
					t.Errorf("%d classes in %d cells: a line of %d: %s", classes, width, n, line)
				}
			}
			want := []string{"macro", "taken for", "calibration error 10.00 %"}
			if classes > 20 {
				want = append(want, fmt.Sprintf("lowest F1 of %d", classes))
			}
			for _, w := range want {
				if !strings.Contains(text, w) {
					t.Errorf("%d classes in %d cells: no %q in\n%s", classes, width, w, text)
				}
			}
		}
	}
}
