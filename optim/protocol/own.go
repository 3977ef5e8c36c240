package protocol

import "brood/optim"

// Parity is the example of a rule table: it decides whether the number of ones is odd. A leader holds the parity of the
// ones that it has collected.
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

// Own runs the user's rule table; without one it runs Parity.
var Own = ruleTable(Parity, must(Parity.Compile()))

// maxStateSeries is the largest number of states of a rule table for which each state has a series. With more states
// each output has one, and there is none without outputs.
const maxStateSeries = 8

// ruleTable returns the algorithm that runs t, the compiled table of s.
func ruleTable(s Spec, t *Table) *optim.Algorithm {
	r := rules{
		states: constant(len(t.States)),
		table:  func(optim.Values) *Table { return t },
		begin:  func(k optim.Values) ([]uint64, error) { return s.begin(uint64(k.I("n"))) },
	}
	if len(t.States) > maxStateSeries {
		r.outputs = append([]string{}, t.Outputs...) // not nil
	}
	if s.Expect != "" {
		r.right = func(optim.Values) string { return s.Expect }
	}
	a := protocol(optim.Algorithm{
		Name:  "protocol",
		Title: "Rule table",
		Paper: "a rule table of your own; docs/protocols.md describes its format",
		Doc: `Agents follow the rule table in the [protocol] section of the experiment. Without one they compute the parity of
the number of ones. The run records the table. An execution has converged when the table's condition converged holds. A
member is one execution.
Series: loss is the distance to that condition.
Bytes: 16 per member to every other worker in each round.`,
		Knobs: []optim.Knob{knobN},
	}, 1, r)
	a.FromSpec = func(text []byte) (*optim.Algorithm, error) {
		s, err := ParseSpec(text)
		if err != nil {
			return nil, err
		}
		t, err := s.Compile()
		if err != nil {
			return nil, err
		}
		return ruleTable(s, t), nil
	}
	return a
}
