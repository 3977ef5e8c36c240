package metrics

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"brood/runtime/view/sourcetest"
)

// rules is the format of rule files of Prometheus, as far as ours use it.
type rules struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Alert, Expr, For string
			Annotations      struct{ Summary, Description string }
		}
	}
}

// dashboard has the fields of a Grafana dashboard that contain expressions.
type dashboard struct {
	Title      string
	Templating struct {
		List []struct{ Query string }
	}
	Panels []struct {
		Title   string
		Targets []struct{ Expr string }
	}
}

var (
	metricRE = regexp.MustCompile(`\b(brood_\w+)(\{[^}]*\})?`)
	labelRE  = regexp.MustCompile(`(\w+) *(?:=~|!~|!=|=) *"`)
)

// missing returns the metrics of an expression that have no sample with the labels which the expression selects by.
// Prometheus adds the labels job and instance itself.
func missing(expr string, samples map[string]float64) (out []string) {
	for _, m := range metricRE.FindAllStringSubmatch(expr, -1) {
		found := slices.ContainsFunc(slices.Collect(maps.Keys(samples)), func(sample string) bool {
			labels, ok := strings.CutPrefix(sample, m[1]+"{")
			for _, l := range labelRE.FindAllStringSubmatch(m[2], -1) {
				ok = ok && (l[1] == "job" || l[1] == "instance" || strings.Contains(","+labels, ","+l[1]+"="))
			}
			return ok
		})
		if !found {
			out = append(out, m[0])
		}
	}
	return out
}

// TestWatching: every expression of the alert rules and of the dashboard names metrics that a run has.
func TestWatching(t *testing.T) {
	src := source{Memory: sourcetest.NewMemory(sourcetest.Run(3, 40)...)}
	defer src.Close()
	samples, _ := scrape(t, src)
	check := func(what, expr string) {
		t.Helper()
		if gone := missing(expr, samples); len(gone) > 0 || !strings.Contains(expr, "brood_") {
			t.Errorf("%s: %q lacks %q", what, expr, gone)
		}
	}
	for _, wrong := range []string{"rate(brood_round_total[1m])", `brood_phase{state="training"}`} {
		if len(missing(wrong, samples)) != 1 {
			t.Errorf("%s is accepted", wrong)
		}
	}

	text, err := os.ReadFile("../../docs/watching/alerts.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	var r rules
	if err := yaml.UnmarshalStrict(text, &r); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, g := range r.Groups {
		for _, x := range g.Rules {
			names = append(names, x.Alert)
			check(x.Alert, x.Expr)
			if x.Annotations.Summary == "" || x.Annotations.Description == "" {
				t.Errorf("%s has no text", x.Alert)
			}
		}
	}
	if want := []string{"BroodNoCommit", "BroodOldCheckpoint", "BroodWorkersLost",
		"BroodLowGoodput"}; !slices.Equal(names, want) {
		t.Errorf("the rules are %v", names)
	}

	if text, err = os.ReadFile("../../docs/watching/dashboard.json"); err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if d.Title == "" || len(d.Panels) == 0 {
		t.Errorf("an empty dashboard: %+v", d)
	}
	for _, p := range d.Panels {
		if len(p.Targets) == 0 {
			t.Errorf("panel %s has no expression", p.Title)
		}
		for _, x := range p.Targets {
			check(p.Title, x.Expr)
		}
	}
}
