package cli

import (
	"strings"
	"testing"
	"time"

	"brood/models/engine"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/view"
)

// TestFleetLines: the status of a fleet names the state of the run, the age of its checkpoint, each worker with its
// members, and the links that are slowed down.
func TestFleetLines(t *testing.T) {
	began := time.Unix(1000, 0)
	v := view.New()
	roster := collective.Roster{Members: []engine.Member{0, 1, 2, 7}, Owner: []int{0, 0, 0, 1}}
	for i, r := range []event.Record{
		{Config: &event.Config{}},
		{Plan: &event.Plan{Epoch: 1, Algorithm: "parle", New: roster}},
		{State: &event.State{Phase: event.Training}},
		{Commit: &event.Commit{Epoch: 1, To: 12, Rounds: 12, Progress: event.Progress{Rounds: 12}}},
		{Checkpoint: &event.Checkpoint{Round: 12, Epoch: 1}},
	} {
		r.At = began.Add(time.Duration(i) * time.Second).UnixNano()
		v.Apply(r)
	}
	f := view.Fleet{
		Workers: []view.Worker{
			{ID: 0, State: event.Hosting, Members: []engine.Member{0, 1, 2}},
			{ID: 1, State: event.Cordoned, Members: []engine.Member{7}, Name: "node-7", Kernels: "f32/1",
				RTT: 1234 * time.Microsecond, Sent: 2e6, Received: 1e3, Silent: time.Second, Since: time.Hour},
		},
		Links: []view.Link{{From: 0, To: 1, Shape: &event.Link{From: 0, To: 1, Rate: 1e6}}, {From: 1, To: 0, Relayed: true}},
	}
	got := strings.Join(fleetLines("digits", v, f, began.Add(34*time.Second)), "\n")
	for _, want := range []string{"digits: training, round 12, 4 members on 2 workers", "saved: round 12, 30s ago",
		"0–2", "node-7", "cordoned", "1.23ms", "1h", "slowed down: worker 0 to worker 1: 1 MB/s",
		"through the coordinator: worker 0 and worker 1"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
	if strings.Contains(got, "worker 1 to worker 0") || strings.Count(got, "through") != 1 {
		t.Errorf("a link that is not slowed down is listed:\n%s", got)
	}
	waits := fleetLines("digits", view.New(), view.Fleet{Wait: 3, Workers: f.Workers[1:]}, began)
	if len(waits) < 2 || waits[1] != "it waits for 2 more workers" {
		t.Errorf("%q", waits)
	}
}
