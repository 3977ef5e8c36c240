package coordinator

import (
	"slices"
	"strings"
	"testing"

	"brood/runtime/event"
	"brood/runtime/message"
)

// TestNotesAreChecked: notes of a worker become alerts, so their number, kinds and texts are limited.
func TestNotesAreChecked(t *testing.T) {
	fine := message.Note{Kind: event.AlertMissing, Text: "one is missing"}
	if err := checkNotes(message.Done{Notes: []message.Note{fine, {Kind: event.AlertVaries}, {Kind: event.AlertMetric},
		{Kind: event.AlertRestarts}}}); err != nil {
		t.Error(err)
	}
	for want, notes := range map[string][]message.Note{
		"the maximum is":            slices.Repeat([]message.Note{fine}, message.MostNotes+1),
		"may not raise":             {{Kind: event.AlertKill, Text: "x"}},
		"too long or not printable": {{Kind: event.AlertVaries, Text: "a\x1b[31mb"}},
		"or not printable":          {{Kind: event.AlertVaries, Text: strings.Repeat("x", message.MostNote+1)}},
	} {
		if err := checkNotes(message.Done{Notes: notes}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
