package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"brood/models/engine"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
	"brood/tui/panel"
)

// fleetSource is a live run with a Surveyor.
type fleetSource struct {
	*sourcetest.Memory
	now   view.Fleet
	err   error
	asked int
}

func (c *fleetSource) Fleet(context.Context) (view.Fleet, error) {
	c.asked++
	return view.Fleet{Workers: slices.Clone(c.now.Workers), Links: slices.Clone(c.now.Links),
		Machines: slices.Clone(c.now.Machines), Wait: c.now.Wait, Doing: c.now.Doing}, c.err
}

// fleetOf returns n workers, w1 to wn, with 4 members each; every fifth has another state.
func fleetOf(n int) (f view.Fleet) {
	for i := range n {
		id := i + 1
		w := view.Worker{ID: id, State: event.Hosting, Name: fmt.Sprintf("rack%d-node%d", 1+i/4, 1+i%4),
			Address: fmt.Sprintf("10.0.%d.%d:41%03d", i/4, 7+i, i*37%1000),
			Kernels: "f32/1,gorgonia/gonum/amd64", Software: "brood 0.9.0",
			Since: time.Duration(754+61*i) * time.Second, RTT: time.Duration(380+i*i*1710) * time.Microsecond,
			Silent: time.Duration(200+50*(i%3)) * time.Millisecond}
		for m := range 4 {
			w.Members = append(w.Members, engine.Member(4*i+m))
		}
		if i%6 == 2 {
			w.Device = "cuda:0 NVIDIA H100, 80 GiB"
		}
		switch i % 5 {
		case 1:
			w.Silent = 1400 * time.Millisecond
		case 2:
			w.State = event.Cordoned
		case 3:
			w.State, w.Members = event.Idle, nil
		case 4:
			w.State = event.Leaving
		}
		f.Workers = append(f.Workers, w)
	}
	for _, a := range f.Workers {
		for _, b := range f.Workers {
			if a.ID == b.ID {
				continue
			}
			l := view.Link{From: a.ID, To: b.ID, RTT: time.Duration(250+900*a.ID*b.ID) * time.Microsecond,
				Lost: float64(a.ID*b.ID%4) / 400}
			if len(a.Members) > 0 && len(b.Members) > 0 {
				l.Sent = 3.1e5 * float64(1+a.ID*b.ID%7)
			}
			if a.ID == 1 && b.ID == 3 {
				l.Shape = &event.Link{From: 1, To: 3, Rate: 1_250_000, Delay: 20 * time.Millisecond}
			}
			f.Links = append(f.Links, l)
			f.Workers[a.ID-1].Sent += l.Sent
			f.Workers[b.ID-1].Received += l.Sent
		}
	}
	return f
}

// withoutLeaving removes the leaving workers from [fleetOf].
func withoutLeaving(f view.Fleet) view.Fleet {
	for i := range f.Workers {
		if f.Workers[i].State == event.Leaving {
			f.Workers[i].State = event.Hosting
		}
	}
	return f
}

// openFleet opens the Fleet screen of a run with these workers.
func openFleet(t testing.TB, w, h int, f view.Fleet, keys string) (*desk, *fleetSource) {
	c := &fleetSource{Memory: sourcetest.NewMemory(sourcetest.Run(12, 400)...), now: f}
	d := open(t, w, h, nil, func(o *panel.Options) { o.Source = c })
	d.press("2")
	d.press(strings.Fields(keys)...)
	return d, c
}

// nextSurvey advances the clock and delivers the answer to the next request.
func (d *desk) nextSurvey() {
	d.now = d.now.Add(time.Second)
	if cmd := d.fleet.Survey(d.model.Host); cmd != nil {
		d.deliver(cmd())
	}
}

// sentActions returns the sent actions, such as "drain 2".
func (d *desk) sentActions() (out []string) {
	for _, c := range d.sent {
		out = append(out, fmt.Sprintf("%s %d", c.Action, c.Worker))
	}
	return out
}

// order returns the workers of the table from top to bottom.
func (d *desk) order() (out []int) {
	rows, _ := d.fleet.Rows(d.model.Host)
	for _, x := range rows {
		out = append(out, x.ID)
	}
	return out
}

func (d *desk) marks() (out []int) {
	for id := range d.fleet.Marked {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

func TestGoldenFleet(t *testing.T) {
	for _, c := range []struct {
		name, keys string
		f          view.Fleet
	}{
		{"fleet", "j v j", fleetOf(5)},
		{"fleet-links", "tab j l l l", fleetOf(5)},
	} {
		for _, size := range [][2]int{{40, 10}, {60, 12}, {80, 24}, {120, 40}, {200, 50}} {
			name := fmt.Sprintf("%s-%dx%d", c.name, size[0], size[1])
			t.Run(name, func(t *testing.T) {
				d, _ := openFleet(t, size[0], size[1], c.f, c.keys)
				golden(t, name, d.screenText())
			})
		}
	}
	alone := view.Fleet{Workers: []view.Worker{{ID: 0, State: event.Hosting, Members: collective.IDs(6)},
		{ID: 1, State: event.Hosting, Members: []engine.Member{6, 7, 8, 9, 10, 11}}}}
	for _, c := range []struct {
		name, keys string
		w, h       int
		f          view.Fleet
	}{
		{"fleet-crowd", "tab G j j j j j j j j j j l l l l l l l l l l l", 200, 50, fleetOf(24)},
		{"fleet-crowd", "G", 80, 24, fleetOf(24)},
		{"fleet-local", "", 80, 24, alone},
		{"fleet-worker", "j enter", 80, 24, fleetOf(5)},
		{"fleet-shaper", "tab j l l l enter tab", 80, 24, fleetOf(5)},
		{"fleet-kill", "K", 80, 24, fleetOf(5)},
	} {
		name := fmt.Sprintf("%s-%dx%d", c.name, c.w, c.h)
		t.Run(name, func(t *testing.T) {
			d, _ := openFleet(t, c.w, c.h, c.f, c.keys)
			golden(t, name, d.screenText())
		})
	}
	t.Run("fleet-recording-80x24", func(t *testing.T) {
		d := open(t, 80, 24, nil, func(o *panel.Options) {
			o.Source,
				o.Commander = fastReplay(&memoryLog{rs: sourcetest.Run(12, 60)}), nil
		})
		d.press("end", "2")
		golden(t, "fleet-recording-80x24", d.screenText())
	})
}
