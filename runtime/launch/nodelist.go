package launch

import (
	"fmt"
	"strconv"
	"strings"
)

const maxNodes = 1 << 16

// Nodes expands a list of nodes of Slurm, such as "n[01-03,7],login,r[1-2]c[1-4]", in its order. Numbers keep their
// leading zeros.
func Nodes(list string) (out []string, err error) {
	bad := func(what string) ([]string, error) {
		return nil, fmt.Errorf("%q is not a list of nodes: %s", list, what)
	}
	for rest := list; ; {
		end, depth := len(rest), 0
		for i, r := range rest {
			switch {
			case r == '[':
				depth++
			case r == ']':
				depth--
			case r == ',' && depth == 0:
				end = i
			}
			if depth < 0 || depth > 1 {
				return bad("its brackets do not match")
			}
			if end == i {
				break
			}
		}
		if depth != 0 {
			return bad("its brackets do not match")
		}
		names, err := expand(rest[:end])
		if err != nil {
			return bad(err.Error())
		}
		if out = append(out, names...); len(out) > maxNodes {
			return bad(fmt.Sprintf("it has more than %d", maxNodes))
		}
		if end == len(rest) {
			return out, nil
		}
		rest = rest[end+1:]
	}
}

// expand expands one element of a list, without commas outside of brackets, to all combinations of its brackets; the
// last bracket varies fastest.
func expand(element string) ([]string, error) {
	if element == "" {
		return nil, fmt.Errorf("a name is empty")
	}
	head, rest, bracket := strings.Cut(element, "[")
	if !bracket {
		return []string{element}, nil
	}
	inside, tail, _ := strings.Cut(rest, "]")
	tails := []string{""}
	if tail != "" {
		var err error
		if tails, err = expand(tail); err != nil {
			return nil, err
		}
	}
	var out []string
	for part := range strings.SplitSeq(inside, ",") {
		low, high, ranged := strings.Cut(part, "-")
		if !ranged {
			high = low
		}
		a, errA := strconv.ParseUint(low, 10, 32)
		b, errB := strconv.ParseUint(high, 10, 32)
		if errA != nil || errB != nil || b < a {
			return nil, fmt.Errorf("%q is neither a number nor a range", part)
		}
		if (b-a+1)*uint64(len(tails)) > maxNodes-uint64(len(out)) {
			return nil, fmt.Errorf("it has more than %d", maxNodes)
		}
		for n := a; n <= b; n++ {
			for _, t := range tails {
				out = append(out, fmt.Sprintf("%s%0*d%s", head, len(low), n, t))
			}
		}
	}
	return out, nil
}
