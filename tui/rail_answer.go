package tui

import (
	"strconv"
	"strings"

	"brood/optim"
	"brood/runtime/view"
	"brood/tui/cell"
)

// footnote is the text below a knob with its colour role.
type footnote struct {
	text string
	role cell.Role
	past bool // the text is from the history of the knob; no change is pending
}

// footnote returns the text below a knob. An answer that is not settled is shown below every knob, and names what it is
// about. Once it is in effect, each knob shows its own newest edit alone.
func (r *rail) footnote(m *model, k optim.Knob) footnote {
	a := r.answer
	switch {
	case a.bad:
		return footnote{text: a.text, role: cell.Alert}
	case a.text == "" || a.done && !a.swap:
		if len(r.staged) > 0 {
			return footnote{}
		}
		return footnote{text: m.newest(k), role: cell.Good, past: true}
	case a.done || a.only(k) || a.what == "":
		return footnote{text: a.text, role: cell.Good}
	}
	return footnote{text: a.text + ": " + a.what, role: cell.Good}
}

// only reports whether the answer changes this knob and no other one.
func (a answer) only(k optim.Knob) bool {
	name, _, one := strings.Cut(a.what, " = ")
	return one && name == k.Name && !strings.Contains(a.what, ", ")
}

// newest describes the newest edit of a knob by a command that is in effect; "" if there is none.
func (m *model) newest(k optim.Knob) string {
	v := m.shown
	if k.Name == view.MembersKnob {
		for i := len(v.Marks) - 1; i >= 0; i-- {
			if x := v.Marks[i]; x.Before != x.After && x.Round <= v.Progress.Rounds {
				return inEffectSince(x.Round, k.Name, strconv.Itoa(x.After))
			}
		}
		return ""
	}
	if m.knobs == nil {
		return ""
	}
	h := m.knobs.History(k.Name)
	for i := len(h) - 1; i >= 0; i-- {
		if e := h[i]; e.First() <= v.Progress.Rounds {
			if e.Given() {
				return ""
			}
			return inEffectSince(e.First(), k.Name, e.Expr)
		}
	}
	return ""
}

func inEffectSince(at uint64, knob, value string) string {
	return "in effect since round " + round(at) + ": " + knob + " = " + value
}
