package protocol

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"brood/models/tomlerr"

	"github.com/pelletier/go-toml/v2"
)

// Spec is a rule table that a user writes: the [protocol] table of an experiment. See docs/protocols.md.
type Spec struct {
	Name   string   `toml:"name"`
	States []string `toml:"states"`
	Rules  []string `toml:"rules"` // "A,B->C,D"; also B,A->D,C, unless that pair has a rule
	// "stay": pairs without a rule keep their states; "": every pair must have a rule
	Otherwise string            `toml:"otherwise"`
	Output    map[string]string `toml:"output,omitempty"` // output by state; a state that is missing has none
	Start     map[string]any    `toml:"start"`            // by state: a share of the agents, a number of agents, or "rest"
	Converged string            `toml:"converged"`        // "consensus", "silent", or a limit such as "L<=1"
	Expect    string            `toml:"expect,omitempty"` // the expected output; empty: none
}

// maxStates is the largest number of states in a user's rule table.
const maxStates = 256

// ParseSpec reads a rule table in the form that a log stores: the keys of [protocol], without the table header.
func ParseSpec(text []byte) (s Spec, err error) {
	if err := tomlerr.Decode(text, &s); err != nil {
		return s, fmt.Errorf("protocol: %w", err)
	}
	return s, nil
}

// Text returns the table in the form that ParseSpec reads.
func (s Spec) Text() ([]byte, error) { return toml.Marshal(s) }

// Compile checks the spec and builds its table. It does not check what depends on the number of agents: start counts
// that exceed n.
func (s Spec) Compile() (*Table, error) {
	t, err := s.compile()
	if err != nil {
		return nil, fmt.Errorf("protocol %s: %w", s.Name, err)
	}
	return t, nil
}

func (s Spec) compile() (*Table, error) {
	switch {
	case s.Name == "":
		return nil, errors.New("the table needs a name")
	case len(s.States) < 2 || len(s.States) > maxStates:
		return nil, fmt.Errorf("%d states: give 2 to %d", len(s.States), maxStates)
	}
	for i, name := range s.States {
		if name == "" || len(name) > 16 || strings.ContainsAny(name, ",<>=\" \t\r\n") {
			return nil, fmt.Errorf("state %q: a name is 1 to 16 bytes without blanks, commas, quotes, <, > and =", name)
		}
		if slices.Index(s.States, name) < i {
			return nil, fmt.Errorf("state %s is listed twice", name)
		}
	}
	next, err := s.rules()
	if err != nil {
		return nil, err
	}
	g, err := s.goal()
	if err != nil {
		return nil, err
	}
	outputs := make([]string, len(s.States))
	for _, name := range slices.Sorted(maps.Keys(s.Output)) {
		i, err := s.state(name, "output")
		if err != nil {
			return nil, err
		}
		outputs[i] = s.Output[name]
	}
	switch {
	case g.kind == consensus && len(s.Output) == 0:
		return nil, errors.New("converged = \"consensus\" needs outputs: give some, as in output = {A = \"yes\", B = \"no\"}")
	case s.Expect != "" && (g.kind != consensus || !slices.Contains(outputs, s.Expect)):
		return nil, fmt.Errorf("expect = %q is no output of a protocol that converges to a consensus", s.Expect)
	}
	if _, err := s.begin(1 << 20); err != nil {
		return nil, err
	}
	return newTable(s.Name, s.States, outputs, g, func(a, b uint16) (uint16, uint16) {
		n := next[pair{a, b}]
		return n.a, n.b
	})
}

// state returns the index of the state called name. key is the place where the name is used, for the error.
func (s Spec) state(name, key string) (uint16, error) {
	i := slices.Index(s.States, name)
	if i < 0 {
		return 0, fmt.Errorf("%s names state %q, which is none of %s", key, name, strings.Join(s.States, ", "))
	}
	return uint16(i), nil
}

// rules parses the rules and returns the new states of every ordered pair.
func (s Spec) rules() (map[pair]pair, error) {
	next := map[pair]pair{}
	for _, text := range s.Rules {
		left, right, arrow := strings.Cut(text, "->")
		a, b, comma := strings.Cut(left, ",")
		c, d, more := strings.Cut(right, ",")
		if !arrow || !comma || !more {
			return nil, fmt.Errorf("rule %q: write it as \"A,B->C,D\"", text)
		}
		var at [4]uint16
		for i, name := range []string{a, b, c, d} {
			var err error
			if at[i], err = s.state(strings.TrimSpace(name), fmt.Sprintf("rule %q", text)); err != nil {
				return nil, err
			}
		}
		from := pair{at[0], at[1]}
		if _, twice := next[from]; twice {
			return nil, fmt.Errorf("rule %q: %s,%s has a rule already", text, s.States[from.a], s.States[from.b])
		}
		next[from] = pair{at[2], at[3]}
	}
	if s.Otherwise != "" && s.Otherwise != "stay" {
		return nil, fmt.Errorf("otherwise = %q: write \"stay\", or leave it out if every pair has a rule", s.Otherwise)
	}
	given := maps.Clone(next) // without the mirrored rules
	for a := range uint16(len(s.States)) {
		for b := range uint16(len(s.States)) {
			from, mirrored := pair{a, b}, pair{b, a}
			if _, ok := given[from]; ok {
				continue
			}
			if m, ok := given[mirrored]; ok {
				next[from] = pair{m.b, m.a}
				continue
			}
			if s.Otherwise == "" {
				return nil, fmt.Errorf("%s,%s has no rule: add one, or set otherwise = \"stay\" if such pairs keep their states",
					s.States[a], s.States[b])
			}
			next[from] = from
		}
	}
	return next, nil
}

func (s Spec) goal() (goal, error) {
	switch s.Converged {
	case "consensus":
		return goal{kind: consensus}, nil
	case "silent":
		return goal{kind: silent}, nil
	}
	name, limit, ok := strings.Cut(s.Converged, "<=")
	n, err := strconv.ParseUint(strings.TrimSpace(limit), 10, 64)
	if !ok || err != nil {
		return goal{}, fmt.Errorf("converged = %q: write \"consensus\", \"silent\", or a limit such as \"L<=1\"", s.Converged)
	}
	i, err := s.state(strings.TrimSpace(name), "converged")
	return goal{atMost, []uint16{i}, n}, err
}

// begin returns how many of n agents start in each state.
func (s Spec) begin(n uint64) ([]uint64, error) {
	count := make([]uint64, len(s.States))
	rest, left := -1, n
	for _, name := range slices.Sorted(maps.Keys(s.Start)) {
		i, err := s.state(name, "start")
		if err != nil {
			return nil, err
		}
		switch x := s.Start[name].(type) {
		case string:
			if x != "rest" || rest >= 0 {
				return nil, fmt.Errorf("start: %s = %q: exactly one state takes \"rest\"", name, x)
			}
			rest = int(i)
			continue
		case int64:
			if x < 0 {
				return nil, fmt.Errorf("start: %s = %d agents: give 0 or more", name, x)
			}
			count[i] = uint64(x)
		case float64:
			if !(x >= 0 && x <= 1) {
				return nil, fmt.Errorf("start: %s = %g: a share must be in 0 to 1, and a number of agents must be an "+
					"integer", name, x)
			}
			count[i] = uint64(float64(x * float64(n)))
		default:
			return nil, fmt.Errorf("start: %s = %v: give a share such as 0.5, a number of agents, or \"rest\"", name, x)
		}
		if count[i] > left {
			return nil, fmt.Errorf("start: more than %d agents: lower the counts and shares, or raise n", n)
		}
		left -= count[i]
	}
	if rest < 0 {
		return nil, errors.New("start: one state must take \"rest\", as in start = {A = 0.6, B = \"rest\"}")
	}
	count[rest] = left
	return count, nil
}
