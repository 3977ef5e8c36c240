package protocol

import (
	"fmt"
	"math"

	"brood/optim"
)

// JuntaLeader elects a leader by coins in rounds that a clock of few agents, the junta, gives.
var JuntaLeader = protocol(optim.Algorithm{
	Name:  "junta-leader",
	Title: "Leader election by a junta",
	Paper: "Gąsieniec, Stachowiak: Fast space optimal leader election in population protocols (2018)",
	Doc: `Every agent starts as a leader. An election has four parts:

    levels    the first meeting of an agent lifts it to level 1 if it initiates, else it stops at 0; from then on, when
              it initiates, it rises if it meets a leader of its level or above, else it stops
    clock     the few that rise to level K, about log log n, are the junta; all adopt level K from one another. Hours
              run from 0 to 15: an agent adopts an hour ahead of its own, one of the junta also adds an hour
    coins     when its clock passes 0, a candidate of the junta tosses a coin: heads if it initiated the meeting. All
              learn in this round whether there are heads; a candidate with tails then retires
    crown     each agent has a timer that runs out by such a coin. In a round in which none runs, all start again; in
              the second one, after about 2 log2 n rounds, a candidate is crowned, and all follow it

A leader becomes a follower only if it meets an agent of a higher rank (below K, K, crowned) or a leader of its rank. So
the highest rank always has a leader, and exactly one remains in the end, even if clocks or timers are wrong. It uses
579 + 2K states. Convergence time: O(log^2 n); up to a thousand agents two states are about as fast.
Deviations from the paper: K depends on n, while the agents of the paper follow the highest level that they meet; timers
end the election instead of a second clock; a retired candidate is a leader until another one is crowned.
An execution has converged when one leader is left. A member is one execution.
Series: loss is the share of agents that are leaders beyond the one.
Bytes: 16 per member to every other worker in each round.`,
	Knobs: []optim.Knob{knobN},
}, 10, rules{
	states: juntaStates,
	key:    func(k optim.Values) any { return juntaFor(k.I("n")) },
	table:  func(k optim.Values) *Table { return must(juntaFor(k.I("n")).table()) },
	begin: func(k optim.Values) ([]uint64, error) {
		count := make([]uint64, juntaStates(k))
		count[0] = uint64(k.I("n"))
		return count, nil
	},
	outputs: []string{"leader", "follower"},
})

// junta holds the constants of the protocol.
type junta struct {
	levels int // K: agents of this level have a clock
	hours  int // of the clock: a round; even
	stages int // how often all timers run out before a candidate is crowned
}

// juntaFor returns the protocol for n agents. A clock of 16 hours stays in order, as measured up to a million agents;
// with 8 it does not. After one stage, about log2 n rounds, some candidates are often left.
func juntaFor(n int) junta { return junta{levels: juntaLevels(n), hours: 16, stages: 2} }

func juntaStates(k optim.Values) int { return juntaFor(k.I("n")).states() }

// juntaLevels returns K for n agents: the highest level that about ln n agents reach or more, at least 1. As measured,
// a share of about 2^(-3/4*2^K) reaches level K.
func juntaLevels(n int) int {
	k := 1
	for float64(n)*math.Exp2(-0.75*math.Exp2(float64(k+1))) >= math.Log(float64(n)) {
		k++
	}
	return k
}

type juntaRole uint8

const (
	climbing  juntaRole = iota // leader below level K that climbs
	settled                    // leader below level K that has stopped
	waiting                    // follower below level K
	heads                      // candidate of level K with heads
	tails                      // candidate of level K with tails
	retired                    // leader of level K that is no candidate
	follower                   // follower of level K
	crowned                    // leader above level K
	withdrawn                  // follower above level K
)

// timerState is what an agent of level K knows of the timers in this round.
type timerState uint8

const (
	running timerState = iota // its own timer runs
	heard                     // its own has run out, another one runs
	unheard                   // it knows of none that runs
)

// juntaState is a state of junta-leader. The fields after level are 0 below and above level K.
type juntaState struct {
	role     juntaRole
	level    int // of a climbing or settled agent, else 0
	hour     int
	stage    int // how often the timers have run out
	timer    timerState
	informed bool // it knows of heads in this round; always true for heads, false for tails
}

func (s juntaState) leads() bool {
	return s.role != waiting && s.role != follower && s.role != withdrawn
}

func (s juntaState) candidate() bool { return s.role == heads || s.role == tails }

// rank is 0 below level K, 1 on it and 2 above.
func (s juntaState) rank() int {
	switch {
	case s.role < heads:
		return 0
	case s.role < crowned:
		return 1
	}
	return 2
}

// states returns the number of states.
func (p junta) states() int { return 2*p.levels + 3 + 18*p.hours*p.stages }

// list returns the states. All agents start in the first one.
func (p junta) list() []juntaState {
	all := make([]juntaState, 0, p.states())
	for l := range p.levels {
		all = append(all, juntaState{role: climbing, level: l}, juntaState{role: settled, level: l})
	}
	all = append(all, juntaState{role: waiting}, juntaState{role: crowned}, juntaState{role: withdrawn})
	for at := range p.hours * p.stages {
		for timer := running; timer <= unheard; timer++ {
			s := juntaState{hour: at / p.stages, stage: at % p.stages, timer: timer}
			for _, x := range []struct {
				role     juntaRole
				informed bool
			}{{heads, true}, {tails, false}, {retired, false}, {retired, true}, {follower, false}, {follower, true}} {
				s.role, s.informed = x.role, x.informed
				all = append(all, s)
			}
		}
	}
	return all
}

func (p junta) table() (*Table, error) {
	all, index := p.list(), map[juntaState]uint16{}
	var names, outputs []string
	var leaders []uint16
	for i, s := range all {
		index[s] = uint16(i)
		out := "follower"
		if s.leads() {
			out = "leader"
			leaders = append(leaders, uint16(i))
		}
		names, outputs = append(names, fmt.Sprintf("%s%v", out, s)), append(outputs, out)
	}
	return newTable("junta-leader", names, outputs, goal{atMost, leaders, 1}, func(a, b uint16) (uint16, uint16) {
		u, v := p.meet(all[a], all[b])
		return index[u], index[v]
	})
}

// meet returns the states of the initiator u and the responder v after they meet.
func (p junta) meet(u, v juntaState) (juntaState, juntaState) {
	switch {
	case u.rank() > v.rank():
		return u, followRank(u.rank())
	case u.rank() < v.rank():
		return followRank(v.rank()), v
	case u.rank() == 0:
		return p.climb(u, v)
	case u.rank() == 1:
		return p.tick(u, v)
	case u.role == crowned:
		return u, followRank(2)
	}
	return u, v
}

// followRank returns the state of an agent that has just adopted rank 1 or 2.
func followRank(rank int) juntaState {
	if rank == 1 {
		return juntaState{role: follower}
	}
	return juntaState{role: withdrawn}
}

// climb returns the states of u and v, below level K, after they meet.
func (p junta) climb(u, v juntaState) (juntaState, juntaState) {
	if u.role == settled && v.role == settled { // the higher one remains a leader
		if u.level < v.level {
			return juntaState{role: waiting}, v
		}
		return u, juntaState{role: waiting}
	}
	a, b := u, v
	if u.role == climbing {
		switch {
		case u.level > 0 && (!v.leads() || v.level < u.level):
			a.role = settled
		case u.level+1 < p.levels:
			a.level++
		default:
			a = juntaState{role: heads, informed: true}
		}
	}
	if v.role == climbing && v.level == 0 {
		b.role = settled
	}
	return a, b
}

// tick returns the states of u and v, on level K, after they meet.
func (p junta) tick(u, v juntaState) (juntaState, juntaState) {
	a, b := p.advance(u, v, true), p.advance(v, u, false)
	if a.role == crowned || b.role == crowned {
		if a.role != crowned {
			return juntaState{role: withdrawn}, b
		}
		return a, juntaState{role: withdrawn}
	}
	if a.stage < b.stage {
		a.stage, a.timer = b.stage, running
	} else if b.stage < a.stage {
		b.stage, b.timer = a.stage, running
	}
	if d := a.hour - b.hour; max(d, -d) <= p.hours/2 { // both are in the same round
		a, b = a.learn(b), b.learn(a)
	}
	if a.leads() && b.leads() {
		if b.candidate() && !a.candidate() {
			a.role = follower
		} else {
			b.role = follower
		}
	}
	return a, b
}

// advance returns s after it reads the clock of the agent that it meets.
func (p junta) advance(s, other juntaState, initiator bool) juntaState {
	before := s.hour
	if (other.hour-s.hour+p.hours)%p.hours < p.hours/2 {
		s.hour = other.hour
		if s.leads() {
			s.hour = (s.hour + 1) % p.hours
		}
	}
	if s.hour >= before {
		return s
	}
	switch { // a new round
	case s.timer == running && initiator:
	case s.timer != unheard:
		s.timer = unheard
	case s.stage+1 < p.stages:
		s.stage, s.timer = s.stage+1, running
	case s.candidate():
		return juntaState{role: crowned}
	}
	s.informed = false
	switch {
	case s.candidate() && initiator:
		s.role, s.informed = heads, true
	case s.candidate():
		s.role = tails
	}
	return s
}

// learn returns s after it learns what other, of the same stage, knows of this round.
func (s juntaState) learn(other juntaState) juntaState {
	if s.timer == unheard && other.timer != unheard {
		s.timer = heard
	}
	if other.informed {
		s.informed = true
		if s.role == tails {
			s.role = retired
		}
	}
	return s
}
