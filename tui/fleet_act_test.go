package tui

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"brood/runtime/event"
	"brood/runtime/view/sourcetest"
)

// TestFleetActions uses w1 and w2 that host members, w3 cordoned, w4 idle and w5 leaving (see machines).
func TestFleetActions(t *testing.T) {
	for _, c := range []struct {
		keys string
		did  []string
		says string
	}{
		{"c", []string{"cordon 1"}, "cordon w1 accepted"},
		{"j d", []string{"drain 2"}, "drain w2 accepted"},
		{"j j u", []string{"uncordon 3"}, "uncordon w3 accepted"},
		{"j j d", []string{"drain 3"}, "drain w3 accepted"},
		{"K", nil, ""},
		{"K n", nil, ""},
		{"K y", []string{"kill 1"}, "kill w1 accepted"},
		{"enter j K y", []string{"kill 2"}, "kill w2 accepted"},
		{"v v c", []string{"cordon 1", "cordon 2"}, "cordon w1, w2 accepted"},
		{"v v v c", []string{"cordon 1", "cordon 2"}, "cordon w1, w2 accepted"}, // w3 is already
		{"V K y", []string{"kill 1", "kill 2", "kill 3", "kill 4", "kill 5"}, "kill w1, w2, w3, w4, w5 accepted"},
		{"v k v u", nil, "w2 is not cordoned"}, // marked and not, on to the next
		{"u", nil, "w1 is not cordoned"},
		{"j j c", nil, "w3 is cordoned already"},
		{"G d", nil, "w5 is leaving"},
		{"V c", nil, "no other worker can host the members of w1, w2, w4"},
		{"V V c", []string{"cordon 1"}, "cordon w1 accepted"},
		{"V esc c", []string{"cordon 1"}, "cordon w1 accepted"},
	} {
		d, _ := openFleet(t, 120, 40, fleetOf(5), c.keys)
		if got := d.sentActions(); !slices.Equal(got, c.did) || !strings.Contains(d.Toast.Text, c.says) {
			t.Errorf("%q sends %v and says %q, want %v and %q", c.keys, got, d.Toast.Text, c.did, c.says)
		}
		if len(c.did) > 0 && (d.sent[0].By != "ann" || d.sent[0].ID == 0 || len(d.marks()) > 0 && c.keys[0] != 'v') {
			t.Errorf("%q sends %+v and leaves the marks %v", c.keys, d.sent[0], d.marks())
		}
	}
}

func TestFleetQuestions(t *testing.T) {
	d, _ := openFleet(t, 120, 40, fleetOf(5), "K")
	d.shows("Kill worker 1 (rack1-node1, 4 members)?", "y kill it")
	d.press("n", "V", "K")
	d.shows("Kill 5 workers: w1, w2, w3, w4, w5?", "y kill them")
	// A drain that leaves one host asks; the last cannot be drained.
	f := withoutLeaving(fleetOf(2))
	d, c := openFleet(t, 120, 40, f, "d")
	d.shows("Drain w1? Worker 2 then hosts all 12 members", "y drain")
	if d.press("y"); !slices.Equal(d.sentActions(), []string{"drain 1"}) {
		t.Errorf("sent %v", d.sentActions())
	}
	c.now.Workers[0].State, c.now.Workers[0].Members = event.Cordoned, nil
	d.nextSurvey()
	d.shows("□ drained", "w1 is drained: it hosts no members and can be stopped · u uncordons it")
	if d.press("d"); !strings.Contains(d.Toast.Text, "w1 is drained already") {
		t.Errorf("says %q", d.Toast.Text)
	}
	for _, key := range []string{"d", "c"} {
		if d.press("G", key); !strings.Contains(d.Toast.Text,
			"no other worker can host the members of w2: let one join first") || len(d.sent) > 1 || d.Popup != nil {
			t.Errorf("%s of the last says %q, sent %v", key, d.Toast.Text, d.sentActions())
		}
	}
	c.now.Workers[1].State = event.Joining
	d.nextSurvey()
	if d.press("K"); !strings.Contains(d.Toast.Text, "is reading its data") || d.Popup != nil {
		t.Errorf("says %q", d.Toast.Text)
	}
}

// TestFleetRefusals checks that each worker gets its own command and that a rejection is shown next to accepted
// commands.
func TestFleetRefusals(t *testing.T) {
	d, c := openFleet(t, 120, 40, fleetOf(5), "v v")
	d.say1 = func(c event.Command) (event.Receipt, error) {
		if c.Worker == 2 {
			return event.Receipt{ID: c.ID, Reason: "there is no worker 2"}, nil
		}
		return event.Receipt{ID: c.ID, Accepted: true}, nil
	}
	asked := c.asked
	d.press("c")
	if d.Toast.Text != "cordon w1 accepted; cordon rejected: w2: there is no worker 2" ||
		!slices.Equal(d.marks(), []int{2}) {
		t.Errorf("says %q, marked %v", d.Toast.Text, d.marks())
	}
	if c.asked != asked+1 {
		t.Error("what has changed is not asked for at once")
	}
	d.say1 = func(event.Command) (event.Receipt, error) { return event.Receipt{}, errors.New("broken pipe") }
	if d.press("v", "v", "c"); !strings.Contains(d.Toast.Text, "broken pipe") || len(d.sent) != 3 {
		t.Errorf("says %q after %v", d.Toast.Text, d.sentActions())
	}
}

func TestFleetCommands(t *testing.T) {
	for _, c := range []struct {
		text string
		did  []string
	}{
		{"cordon 2", []string{"cordon 2"}}, {"drain w2", []string{"drain 2"}}, {"uncordon 3",
			[]string{"uncordon 3"}}, {"cordon 9", []string{"cordon 9"}},
		{"cordon w2 1 2", []string{"cordon 1", "cordon 2"}}, {"kill 1", nil},
	} {
		d, _ := openFleet(t, 120, 40, fleetOf(5), "")
		d.press(":").write(c.text).press("enter")
		if got := d.sentActions(); !slices.Equal(got, c.did) || d.prompt != nil {
			t.Errorf("%q sends %v, want %v", c.text, got, c.did)
		}
	}
	for text, want := range map[string]string{"cordon": "write cordon WORKER", "drain x": `"x" is not a worker`,
		"uncordon -3": "not a worker", "kill": "write kill WORKER"} {
		d, _ := openFleet(t, 120, 40, fleetOf(5), "")
		if d.press(":").write(text).press("enter"); d.prompt == nil || !strings.Contains(d.prompt.err, want) ||
			len(d.sent) > 0 {
			t.Errorf("%q: %+v, want a sentence with %q", text, d.prompt, want)
		}
	}
	d := open(t, 120, 40, sourcetest.Run(6, 100), nil) // workers 1 to 3, not asked for
	d.press(":").write("drain ")
	if d.shows("w1  w2  w3"); len(d.sent) > 0 {
		t.Error("completing sends")
	}
}

// TestFleetLeavesTheRunsKeysAlone checks that the keys of the run (x, space, s) keep their meaning on the Fleet screen.
func TestFleetLeavesTheRunsKeysAlone(t *testing.T) {
	d, _ := openFleet(t, 120, 40, fleetOf(5), "x space s")
	if d.AlertCount() > 0 || len(d.sent) != 2 || d.sent[0].Action != event.Pause || d.sent[1].Action != event.Save {
		t.Errorf("alerts %d, sent %v", d.AlertCount(), d.sentActions())
	}
}
