package host

import (
	"context"
	"testing"
	"time"

	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/soon"
	"brood/runtime/view"
)

// TestDue: records follow each other every second at first, and of a process that is as old as a year there are a few
// thousand.
func TestDue(t *testing.T) {
	n, last := 0, time.Duration(0)
	for age := time.Second; age < 365*24*time.Hour; age += max(time.Second, age/2000) {
		if due(age-last, age) {
			n, last = n+1, age
			if age == 600*time.Second && n < 550 {
				t.Errorf("%d records of ten minutes", n)
			}
		}
	}
	if n < 2000 || n > 8000 {
		t.Errorf("%d records of a year", n)
	}
}

// TestMeasuring: nothing is recorded before a round is committed, and then this process is, with what the fleet tells.
func TestMeasuring(t *testing.T) {
	t.Parallel() // it waits
	var s measuring
	got := make(chan coordinator.Measured, 8)
	survey := func(context.Context) view.Fleet { return view.Fleet{Machines: []event.Machine{s.machine()}} }
	end := s.begin(t.Context(), survey, func(m coordinator.Measured) { got <- m })
	soon.Until(t, "a measurement", func() bool { return s.machine().Values != nil })
	if len(got) > 0 {
		t.Errorf("without a round there is a record of %+v", <-got)
	}
	s.take(event.Record{Commit: &event.Commit{To: 1}})
	m := soon.Next(t, got, "a record")
	if len(m.Of) != 1 || m.Of[0].Worker != event.Here || m.Of[0].Values[event.Memory] <= 0 {
		t.Errorf("it is of %+v", m.Of)
	}
	if _, ok := m.Of[0].Values[event.DeviceUsed]; ok {
		t.Error("a process without a device has memory of one")
	}
	end()
}
