package panel

import (
	"strings"
	"unicode"

	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/view"
)

// KnobLabel returns the displayed label of a knob; its name if the terminal cannot show the label.
func (m *Host) KnobLabel(k optim.Knob) string {
	ascii := !strings.ContainsFunc(k.Label, func(r rune) bool { return r > unicode.MaxASCII })
	if k.Label == "" || m.Opt.ASCII && !ascii {
		return k.Name
	}
	return k.Label
}

// KnobLabelByName returns the label of a knob of the run by its name. It returns any other word unchanged.
func (m *Host) KnobLabelByName(name string) string {
	for _, k := range m.AllKnobs() {
		if k.Name == name {
			return m.KnobLabel(k)
		}
	}
	return name
}

// KnobTitle returns the title of a knob, after its name if the label differs from it.
func (m *Host) KnobTitle(k optim.Knob) string {
	if m.KnobLabel(k) == k.Name {
		return k.Title
	}
	return k.Name + ": " + k.Title
}

// AllKnobs returns the knobs of the run.
func (m *Host) AllKnobs() []optim.Knob {
	out := []optim.Knob{m.populationKnob()}
	if m.Alg != nil {
		out = append(out, m.Alg.Shown()...)
	}
	return out
}

// populationKnob returns the pseudo-knob of the population size, at the top of the rail.
func (m *Host) populationKnob() optim.Knob {
	n := max(1, len(m.Shown.Members().Members))
	return optim.Knob{
		Name:    view.MembersKnob,
		Label:   event.MembersLabel,
		Title:   "population",
		Unit:    "members",
		Min:     1,
		Max:     event.MaxMembers,
		Default: float64(n),
		Integer: true,
		Doc:     "number of members; the algorithm initialises new ones, the highest ids leave first",
	}
}

// KnobsFocused reports whether a panel of knobs has the focus.
func (m *Host) KnobsFocused() bool { return m.Focus == Knobs || m.Focus == Schedules }

// KnobValue returns the value of a knob in the next round.
func (m *Host) KnobValue(k optim.Knob) float64 {
	if k.Name == view.MembersKnob || m.Knobs == nil {
		return k.Default
	}
	return m.Knobs.Value(k)
}
