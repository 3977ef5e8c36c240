package cli

import (
	"encoding/json"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"brood/runtime/forecast"
)

// TestSimulatedObjects: the page of JSON events names all keys of a line.
func TestSimulatedObjects(t *testing.T) {
	page, err := os.ReadFile("../../docs/json-events.md")
	if err != nil {
		t.Fatal(err)
	}
	_, row, _ := strings.Cut(string(page), "| `brood simulate fleet --json` |")
	row, _, _ = strings.Cut(row, "\n")
	b, err := json.Marshal(forecast.Fleet{Departures: new(int), Steady: 1})
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]any{}
	if err := json.Unmarshal(b, &keys); err != nil {
		t.Fatal(err)
	}
	for key := range keys {
		if !strings.Contains(row, "`"+key+"`") {
			t.Errorf("json-events.md does not name %s", key)
		}
	}
}

// TestFleetHeading: the heading describes all settings of the fleet.
func TestFleetHeading(t *testing.T) {
	for _, c := range []struct {
		f    fleetSimulation
		want string
	}{
		{fleetSimulation{away: time.Minute}, "links as fast as loopback on this machine"},
		{fleetSimulation{down: "5Mbit", rack: rackFlags{of: 3, down: "1Mbit"}}, "links: a worker receives 5Mbit, racks of 3 workers, a rack receives 1Mbit"},
		{fleetSimulation{link: linkFlags{rate: "1MB"}, control: time.Second}, "links: 1MB per second each, 1s delay " +
			"to the coordinator"},
		{fleetSimulation{slow: []string{"5", "1=2.5"}, cores: 2}, "links as fast as loopback on this machine; workers: slower by 5 and 1=2.5, 2 cores for all"},
		{fleetSimulation{churn: time.Hour, away: time.Minute}, "links as fast as loopback on this machine; workers: stay for 1h0m0s on average, then die, and return after 1m0s on average"},
		{fleetSimulation{churn: time.Hour, away: time.Minute, goodbye: true}, "links as fast as loopback on this machine; workers: stay for 1h0m0s on average, then leave, and return after 1m0s on average"},
	} {
		if got := c.f.fleet(); got != c.want {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
}

// TestSlowWorkers: a factor without a worker applies to all workers.
func TestSlowWorkers(t *testing.T) {
	slow, err := parseSlow([]string{"5", "1=2.5"})
	if want := map[int]float64{everyWorker: 5, 1: 2.5}; err != nil || !maps.Equal(slow, want) {
		t.Errorf("%v (%v), want %v", slow, err, want)
	}
	for _, text := range []string{"x", "0", "-1", "-1=2", "1=", "=2", "1=1001"} {
		if _, err := parseSlow([]string{text}); err == nil {
			t.Errorf("--slow %s is taken", text)
		}
	}
}
