package protocol

import "context"

// cancelCheckInterval is the number of meetings, jumps or batches between two checks of the context.
const cancelCheckInterval = 1 << 12

// runAgents simulates up to left meetings agent by agent and stops when the goal is reached. agent has state+1 of each
// agent and count the agents in each state; runAgents updates both. It returns the number of meetings done.
func (t *Table) runAgents(
	ctx context.Context,
	agent, count []uint64,
	left uint64,
	r *source,
) (done uint64, reached bool, err error) {
	if t.reached(count) {
		return 0, true, nil
	}
	n := uint64(len(agent))
	for done < left {
		if done%cancelCheckInterval == 0 {
			if err := ctx.Err(); err != nil {
				return done, false, err
			}
		}
		done++
		i, j := r.distinctPair(n)
		a, b := uint16(agent[i]-1), uint16(agent[j]-1)
		c, d := t.meet(a, b)
		if c == a && d == b {
			continue
		}
		agent[i], agent[j] = uint64(c)+1, uint64(d)+1
		count[a]--
		count[b]--
		count[c]++
		count[d]++
		if t.affectsGoal(a, b, c, d) && t.reached(count) {
			return done, true, nil
		}
	}
	return done, false, nil
}
