package protocol

import "brood/optim"

// Parity is the example of a rule table: whether the number of ones is odd. Leaders carry the sum of what they have
// met.
var Parity = Spec{
	Name:   "parity",
	States: []string{"L0", "L1", "F0", "F1"},
	Rules: []string{
		"L0,L0->L0,F0", "L0,L1->L1,F1", "L1,L1->L0,F0",
		"L0,F1->L0,F0", "L1,F0->L1,F1",
	},
	Otherwise: "stay",
	Output:    map[string]string{"L0": "even", "L1": "odd", "F0": "even", "F1": "odd"},
	Start:     map[string]any{"L1": int64(7), "L0": "rest"},
	Converged: "silent",
}

// Own runs a rule table that a person wrote; without one it runs Parity.
var Own = own(Parity, must(Parity.Compile()))

func own(s Spec, t *Table) *optim.Algorithm {
	r := rules{
		table: func(optim.Values) *Table { return t },
		begin: func(k optim.Values) ([]uint64, error) { return s.begin(uint64(k.I("n"))) },
	}
	if s.Expect != "" {
		r.right = func(optim.Values) string { return s.Expect }
	}
	a := protocol(optim.Algorithm{
		Name:  "protocol",
		Title: "Rule table",
		Paper: "a rule table of your own; its form is in docs/protocols.md",
		Doc: `Agents follow the rule table of the experiment's [protocol]; without one it is that of the parity of a number of ones. The table is recorded with
the run. An execution has converged when what the table calls converged holds. A member is an execution.
Series: loss is the distance to that. Bytes: 16 a member to every other worker each round.`,
		Knobs: []optim.Knob{knobN},
	}, 1, r)
	a.Given = func(text []byte) (*optim.Algorithm, error) {
		s, err := ParseSpec(text)
		if err != nil {
			return nil, err
		}
		t, err := s.Compile()
		if err != nil {
			return nil, err
		}
		return own(s, t), nil
	}
	return a
}
