package host

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/testutil"
	"brood/runtime/view"
)

// TestDue: a young process records every second, and a year of training has a few thousand records.
func TestDue(t *testing.T) {
	n, last := 0, time.Duration(0)
	for age := time.Second; age < 365*24*time.Hour; age += max(time.Second, age/2000) {
		if due(age-last, age) {
			n, last = n+1, age
			if age == 600*time.Second && n < 550 {
				t.Errorf("%d records in ten minutes", n)
			}
		}
	}
	if n < 2000 || n > 8000 {
		t.Errorf("%d records in a year", n)
	}
}

// TestMeasuring: nothing is recorded before the first commit. Then a record has the machines of the fleet, including
// this process.
func TestMeasuring(t *testing.T) {
	synctest.Test(t, measures) // it waits for seconds
}

func measures(t *testing.T) {
	var s measurements
	got := make(chan coordinator.Measured, 8)
	survey := func(context.Context) view.Fleet { return view.Fleet{Machines: []event.Machine{s.machine()}} }
	end := s.begin(t.Context(), survey, func(m coordinator.Measured) { got <- m })
	testutil.Eventually(t, "a measurement", func() bool { return s.machine().Values != nil })
	if len(got) > 0 {
		t.Errorf("recorded %+v before a commit", <-got)
	}
	s.take(event.Record{Commit: &event.Commit{To: 1}})
	m := testutil.Receive(t, got, "a record")
	if len(m.Of) != 1 || m.Of[0].Worker != event.Here || m.Of[0].Values[event.Memory] <= 0 {
		t.Errorf("the record has %+v", m.Of)
	}
	if _, ok := m.Of[0].Values[event.DeviceUsed]; ok {
		t.Error("a process without a device has memory of one")
	}
	end()
}

// TestSentPerSecond: a record has the mean rate since the previous record, however the bytes were distributed in that
// time.
func TestSentPerSecond(t *testing.T) {
	b := sentBytes{}
	fleet := func(bytes int64, rate float64) view.Fleet {
		return view.Fleet{
			Machines: []event.Machine{{Worker: event.Here}, {Worker: 0, Values: map[event.Measure]float64{event.Sent: rate}, To: map[int]float64{1: rate}}, {Worker: 1}},
			Links:    []view.Link{{From: 0, To: 1, Sent: rate, Bytes: bytes}},
		}
	}
	for i, c := range []struct {
		bytes int64
		rate  float64 // of the last second
		since time.Duration
		want  float64
	}{
		{2e6, 0, 4 * time.Second, 0.5e6},   // all bytes before the last second
		{4e6, 2e9, 4 * time.Second, 0.5e6}, // or all within a moment of it
		{4e6, 0, 2 * time.Second, 0},
	} {
		got := b.perSecond(fleet(c.bytes, c.rate), c.since)
		if got[1].Values[event.Sent] != c.want || got[1].To[1] != c.want {
			t.Errorf("record %d: %v and %v bytes a second, want %g", i, got[1].Values[event.Sent], got[1].To, c.want)
		}
		if got[0].To != nil || got[2].To != nil {
			t.Errorf("record %d: machines without links have some: %+v", i, got)
		}
	}
}
