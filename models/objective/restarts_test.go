package objective

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"brood/models/engine"
)

// missingNotes returns the notes of an engine except those on restarts.
func missingNotes(e *Engine) []engine.Note {
	return slices.DeleteFunc(e.Notes(), func(n engine.Note) bool { return n.Kind == engine.NoteRestarts })
}

// TestRestartsAreNoted: a program that exits now and then, but answers when asked again, leaves no result missing. Its
// restarts are noted at four, and each time that their number has doubled.
func TestRestartsAreNoted(t *testing.T) {
	o := program(t, "flaky", Flat(3))
	e := open(t, o, 1)
	var noted []int
	for range 40 {
		for _, f := range candidates(t, e, 4, 2) {
			if f != f {
				t.Fatal("a result is missing")
			}
		}
		for _, n := range e.Notes() {
			times, evaluations, ended := 0, 0, "the last time it ended without an answer: exit status 3; stderr: out of rope"
			_, text, ok := strings.Cut(n.Text, "program "+strings.Join(o.Command, " ")+" was restarted ")
			if _, err := fmt.Sscanf(text, "%d times in %d evaluations", &times, &evaluations); err != nil || !ok ||
				n.Kind != engine.NoteRestarts || !strings.HasSuffix(text, ended) {
				t.Fatalf("noted %+v", n)
			}
			if noted = append(noted, times); evaluations < 4*times || evaluations > 160 {
				t.Errorf("noted %q", n.Text)
			}
		}
	}
	for i, times := range noted {
		if least := firstRestartNote << i; times < least || times >= 2*least {
			t.Errorf("noted at %v restarts, want 4, 8 and so on", noted)
		}
	}
	if len(noted) < 2 {
		t.Errorf("noted at %v restarts", noted)
	}
}

// TestFewRestartsAreNotedAtTheEnd: restarts too few for a note are noted when the rounds have ended, and each restart
// is noted only once. Restarts within the last evaluations are counted separately.
func TestFewRestartsAreNotedAtTheEnd(t *testing.T) {
	o := program(t, "flaky", Flat(3))
	e := open(t, o, 1)
	for n, _ := e.Restarts(); n == 0; n, _ = e.Restarts() {
		candidates(t, e, 4, 2)
	}
	if notes := e.Notes(); notes != nil {
		t.Errorf("noted %q at one restart", notes)
	}
	e.Ending()
	if notes := e.Notes(); len(notes) != 1 || !strings.Contains(notes[0].Text, "was restarted 1 time in ") ||
		!strings.HasSuffix(notes[0].Text, "exit status 3; stderr: out of rope") {
		t.Errorf("noted %q in the end", notes)
	}
	e.Ending()
	if notes := e.Notes(); notes != nil {
		t.Errorf("noted %q again", notes)
	}
	e.restarts, e.evaluations, e.recent = 5, 350, []int{10, 249, 250, 340}
	if text := e.restartsText(); !strings.Contains(text,
		"was restarted 5 times in 350 evaluations, 2 times in the last 100: ") {
		t.Error(text)
	}
	if _, asks := open(t, Objective{Spec: Flat(3), Func: naive}, 1).Restarts(); asks {
		t.Error("a function is asked as a program")
	}
}
