package knobs

import (
	"strconv"
	"strings"

	"brood/optim"
	"brood/runtime/timeline"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

// footnote is the text below a knob with its colour role.
type footnote struct {
	Text        string
	role        cell.Role
	fromHistory bool // the text is from the history of the knob; no change is pending
}

// Footnote returns the text below a knob. An answer that is not in effect is shown below every knob, with the change
// that it answers. Once it is in effect, each knob only shows its newest edit.
func (r *Rail) Footnote(m *panel.Host, k optim.Knob) footnote {
	a := r.Answer
	switch {
	case a.Bad:
		return footnote{Text: a.Text, role: cell.Alert}
	case a.Text == "" || a.Done && !a.Swap:
		if len(r.Staged) > 0 {
			return footnote{}
		}
		return footnote{Text: newest(m, k), role: cell.Good, fromHistory: true}
	case a.Done || a.changesOnly(k) || a.What == "":
		return footnote{Text: a.Text, role: cell.Good}
	}
	return footnote{Text: a.Text + ": " + a.What, role: cell.Good}
}

// changesOnly reports whether the answer changes this knob and no other one.
func (a Answer) changesOnly(k optim.Knob) bool {
	return strings.HasPrefix(a.What, k.Name+" ") && !strings.Contains(a.What, ", ")
}

// newest describes the newest edit of a knob by a command that is in effect; "" if there is none.
func newest(m *panel.Host, k optim.Knob) string {
	v := m.Shown
	if k.Name == view.MembersKnob {
		for i := len(v.Marks) - 1; i >= 0; i-- {
			if x := v.Marks[i]; x.Before != x.After && x.Round <= v.Progress.Rounds {
				return inEffectSince(x.Round, k.Name, strconv.Itoa(x.After))
			}
		}
		return ""
	}
	if m.Knobs == nil {
		return ""
	}
	h := m.Knobs.History(k.Name)
	for i := len(h) - 1; i >= 0; i-- {
		if e := h[i]; e.First() <= v.Progress.Rounds {
			if e.FromSpec() {
				return ""
			}
			return inEffectSince(e.First(), k.Name, timeline.Text(e.Edit))
		}
	}
	return ""
}

func inEffectSince(at uint64, knob, value string) string {
	return "in effect since round " + textfmt.Grouped(at) + ": " + knob + " = " + value
}
