package objective

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"brood/models/engine"
)

// missingNotes are the notes of an engine but for those on restarts.
func missingNotes(e *Engine) []engine.Note {
	return slices.DeleteFunc(e.Notes(), func(n engine.Note) bool { return n.Kind == engine.NoteRestarts })
}

// TestRestartsAreTold: a program that ends now and then and answers when it is asked again leaves no result missing. How
// often it was restarted is told at four times, and each time that this number has doubled.
func TestRestartsAreTold(t *testing.T) {
	o := program(t, "flaky", Flat(3))
	e := open(t, o, 1)
	var told []int
	for range 40 {
		for _, f := range candidates(t, e, 4, 2) {
			if f != f {
				t.Fatal("a result is missing")
			}
		}
		for _, n := range e.Notes() {
			times, evaluations, ended := 0, 0, "the last time it ended without an answer: exit status 3; it said: out of rope"
			_, text, ok := strings.Cut(n.Text, "program "+strings.Join(o.Command, " ")+" was restarted ")
			if _, err := fmt.Sscanf(text, "%d times in %d evaluations", &times, &evaluations); err != nil || !ok || n.Kind != engine.NoteRestarts || !strings.HasSuffix(text, ended) {
				t.Fatalf("told %+v", n)
			}
			if told = append(told, times); evaluations < 4*times || evaluations > 160 {
				t.Errorf("told %q", n.Text)
			}
		}
	}
	for i, times := range told {
		if least := firstRestartNote << i; times < least || times >= 2*least {
			t.Errorf("told at %v restarts, want 4, 8 and so on", told)
		}
	}
	if len(told) < 2 {
		t.Errorf("told at %v restarts", told)
	}
}

// TestFewRestartsAreToldInTheEnd: fewer restarts than a note is worth are told of once the rounds have ended, and no
// restart is told of twice. Restarts within the last evaluations are counted apart.
func TestFewRestartsAreToldInTheEnd(t *testing.T) {
	o := program(t, "flaky", Flat(3))
	e := open(t, o, 1)
	for n, _ := e.Restarts(); n == 0; n, _ = e.Restarts() {
		candidates(t, e, 4, 2)
	}
	if notes := e.Notes(); notes != nil {
		t.Errorf("told %q at one restart", notes)
	}
	e.Ending()
	if notes := e.Notes(); len(notes) != 1 || !strings.Contains(notes[0].Text, "was restarted 1 time in ") || !strings.HasSuffix(notes[0].Text, "exit status 3; it said: out of rope") {
		t.Errorf("told %q in the end", notes)
	}
	e.Ending()
	if notes := e.Notes(); notes != nil {
		t.Errorf("told %q again", notes)
	}
	e.restarts, e.evaluations, e.recent = 5, 350, []int{10, 249, 250, 340}
	if text := e.restartsText(); !strings.Contains(text, "was restarted 5 times in 350 evaluations, 2 times in the last 100: ") {
		t.Error(text)
	}
	if _, asks := open(t, Objective{Spec: Flat(3), Func: naive}, 1).Restarts(); asks {
		t.Error("a function is asked as a program")
	}
}
