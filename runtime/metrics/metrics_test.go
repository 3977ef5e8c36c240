package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"brood/models/engine"
	"brood/runtime/event"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
)

// source is a recorded run with two workers on other machines.
type source struct {
	*sourcetest.Memory
	gone bool
}

func (s source) Snapshot(ctx context.Context, at view.Position) (*view.View, error) {
	if s.gone {
		return nil, errors.New("gone")
	}
	return s.Memory.Snapshot(ctx, at)
}

func (s source) Fleet(context.Context) (view.Fleet, error) {
	return view.Fleet{Workers: []view.Worker{{
		ID:      0,
		State:   event.Hosting,
		Members: []engine.Member{0, 1},
		Name:    "a\"b\n",
		Address: "h:1",
		RTT:     time.Millisecond,
	}, {ID: 3, State: event.Idle}},
		Links: []view.Link{{From: 0, To: 3, Sent: 5e6, Bytes: 7e6, RTT: 2 * time.Millisecond, Lost: 0.5, Shape: &event.Link{}}},
		Machines: []event.Machine{{Worker: event.Here, Values: map[event.Measure]float64{event.Busy: 1.25}},
			{Worker: 3, Values: map[event.Measure]float64{event.Memory: 4096, event.RoundTrip: 9}}}}, nil
}

func scrape(t *testing.T, src Source) (map[string]float64, string) {
	t.Helper()
	s, err := Listen("--metrics", ":0")
	if err != nil {
		t.Fatal(err)
	}
	s.Attach("the run", src)
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	if !strings.HasPrefix(s.Address().String(), "127.0.0.1:") {
		t.Errorf("it listens on %s", s.Address())
	}
	text := get(t, s, "/metrics")
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	out := map[string]float64{}
	for name, f := range families {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			x := m.GetGauge().GetValue()
			if m.Counter != nil {
				x = m.Counter.GetValue()
			}
			if h := m.Histogram; h != nil {
				out[name+"_count{}"], out[name+"_sum{}"] = float64(h.GetSampleCount()), h.GetSampleSum()
				for _, b := range h.Bucket {
					out[fmt.Sprintf("%s_bucket{le=%g}", name, b.GetUpperBound())] = float64(b.GetCumulativeCount())
				}
				continue
			}
			out[name+"{"+strings.Join(labels, ",")+"}"] = x
		}
	}
	return out, text
}

// get returns the body of the answer, which must have status 200.
func get(t *testing.T, s *Server, path string) string {
	t.Helper()
	resp, err := http.Get("http://" + s.Address().String() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: status %d, %v", path, resp.StatusCode, err)
	}
	return string(text)
}

// TestHealthBeforeARun: a process whose run has not begun is healthy and has no metrics.
func TestHealthBeforeARun(t *testing.T) {
	s, err := Listen("--metrics", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if text := get(t, s, "/healthz"); text != "ok\n" {
		t.Errorf("%q", text)
	}
	if text := get(t, s, "/metrics"); text != "" {
		t.Errorf("%q", text)
	}
}

// TestScrape: a scrape returns the values of the view in the Prometheus format, with hostile names escaped.
func TestScrape(t *testing.T) {
	v := view.New()
	rs := sourcetest.Run(3, 40)
	for _, r := range rs {
		v.Apply(r)
	}
	src := source{Memory: sourcetest.NewMemory(rs...)}
	defer src.Close()
	got, text := scrape(t, src)
	loss, ok := v.Find("loss").Last(2)
	if !ok {
		t.Fatal("the run has no loss")
	}
	for name, want := range map[string]float64{
		"brood_up{}": 1, "brood_rounds_total{}": float64(v.Progress.Rounds), "brood_steps_total{}": float64(v.Progress.Steps),
		"brood_members{}":                   3,
		"brood_value{member=2,series=loss}": loss, "brood_phase{phase=" + string(v.State.Phase) + "}": 1,
		"brood_worker_members{name=a\"b\n,state=hosting,worker=0}": 2, "brood_worker_round_trip_seconds{worker=0}": 0.001,
		"brood_link_sent_bytes_total{from=0,to=3}": 7e6, "brood_link_lost_ratio{from=0,to=3}": 0.5,
		"brood_process_cpu{worker=}": 1.25, "brood_process_memory{worker=3}": 4096,
	} {
		if x, ok := got[name]; !ok || x != want {
			t.Errorf("%s = %v (%v), want %v", name, x, ok, want)
		}
	}
	for _, b := range v.Ledger.Ops {
		if x := got["brood_sent_bytes_total{op="+string(b.Op)+"}"]; x != float64(b.Sent) || b.Sent == 0 {
			t.Errorf("sent of %s: %v, want %d", b.Op, x, b.Sent)
		}
	}
	for _, never := range []string{"brood_process_memory{worker=}", "brood_process_round_trip{worker=3}"} {
		if x, ok := got[never]; ok {
			t.Errorf("%s = %v, which was never reported", never, x)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

// TestGone: a run that does not answer has brood_up 0 and no other metric.
func TestGone(t *testing.T) {
	got, _ := scrape(t, source{gone: true})
	if len(got) != 1 || got["brood_up{}"] != 0 {
		t.Errorf("%v", got)
	}
}

func TestListen(t *testing.T) {
	if _, err := Listen("--health", "here"); err == nil ||
		!strings.HasPrefix(err.Error(), `--health "here": give HOST:PORT`) {
		t.Errorf("%v", err)
	}
}

// TestDroppedSeries: series that the current algorithm does not measure have no newest value.
func TestDroppedSeries(t *testing.T) {
	_, text := scrape(t, source{Memory: sourcetest.NewMemory(sourcetest.Swapped(2, 40, false)...)})
	if !strings.Contains(text, `series="score"`) || strings.Contains(text, `series="loss"`) {
		t.Errorf("after a swap the values are\n%s", text)
	}
}

// TestRollback: after a rollback the round decreases and the counters do not, as Prometheus requires of counters.
func TestRollback(t *testing.T) {
	rs := sourcetest.Run(3, 40)
	last := rs[len(rs)-1].At
	v := view.New()
	for _, r := range rs {
		v.Apply(r)
	}
	c := *v.Plan
	c.Epoch, c.At, c.From, c.Cause, c.Old = 2, 20, event.Saved, event.CauseRollback, c.New
	rs = append(rs,
		event.Record{At: last, Plan: &c},
		event.Record{At: last, Commit: &event.Commit{Epoch: 2, To: 25, Rounds: 5, Nanos: 5 * 2e9,
			Audited:  []event.Audit{{Of: 1}},
			Progress: event.Progress{Rounds: 25}}},
		event.Record{At: time.Now().Add(-time.Minute).UnixNano(), Checkpoint: &event.Checkpoint{Round: 25}},
	)
	got, _ := scrape(t, source{Memory: sourcetest.NewMemory(rs...)})
	for name, want := range map[string]float64{
		"brood_round{}": 25, "brood_rounds_total{}": 45, "brood_repeated_rounds_total{}": 5, "brood_rollbacks_total{}": 1,
		"brood_steps_total{}": float64(v.Progress.Steps), "brood_lost_workers_total{}": float64(v.Tally.Lost),
		"brood_mirrored_members_total{}": 0, "brood_audits_total{}": 1, "brood_round_duration_seconds_count{}": 45,
		"brood_round_duration_seconds_bucket{le=1}": 40, "brood_round_duration_seconds_bucket{le=2.5}": 45,
		"brood_round_duration_seconds_sum{}": float64(v.Tally.Nanos)/1e9 + 10,
	} {
		if x, ok := got[name]; !ok || math.Abs(x-want) > 1e-9 {
			t.Errorf("%s = %v (%v), want %v", name, x, ok, want)
		}
	}
	if age := got["brood_checkpoint_age_seconds{}"]; age < 60 || age > 90 {
		t.Errorf("the checkpoint of a minute ago has the age %g s", age)
	}
}
