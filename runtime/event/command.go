package event

import (
	"fmt"
	"time"
)

// Command is a request of an operator, one transaction. Zero fields request nothing. It is accepted or rejected as a
// whole. Set, Members and Algorithm take effect together in one round, the other fields immediately.
type Command struct {
	ID        uint64    `cbor:"0,keyasint"`
	By        string    `cbor:"1,keyasint,omitempty"`
	Set       []Setting `cbor:"2,keyasint,omitempty"`
	Members   int       `cbor:"3,keyasint,omitempty"` // new population size
	Algorithm string    `cbor:"4,keyasint,omitempty"` // swap; the new one starts from its defaults and Set
	Action    Action    `cbor:"5,keyasint,omitempty"`
	Limit     *Limit    `cbor:"6,keyasint,omitempty"` // with Resume: go on to another limit
	Worker    int       `cbor:"7,keyasint,omitempty"` // with Kill, Cordon, Drain and Uncordon
	Link      *Link     `cbor:"8,keyasint,omitempty"` // slow a link down, or let it go again
	// the reason in the words of who asks, see [MaxWhy]; it stays with the edits
	Why string `cbor:"10,keyasint,omitempty"`
	// algorithm that Set and Members were meant for: refused where another runs or takes over
	Of string `cbor:"9,keyasint,omitempty"`
}

// MaxWhy is the longest reason of a command, in characters; it is one line.
const MaxWhy = 200

// Setting asks for a knob's value or schedule, as typed. The knob "members" is the population size.
type Setting struct {
	Knob string `cbor:"0,keyasint"`
	Expr string `cbor:"1,keyasint"`
}

// Action steers the run itself.
type Action string

const (
	Pause  Action = "pause"
	Resume Action = "resume"
	Stop   Action = "stop" // finish the round, save, leave
	Save   Action = "save" // a checkpoint now

	Kill     Action = "kill"     // ends a worker without saving its state, to test faults
	Cordon   Action = "cordon"   // a worker gets no members from the next plan on
	Drain    Action = "drain"    // the same, and its members move to the others now
	Uncordon Action = "uncordon" // it takes part again, now
)

// Every selects all workers in place of one.
const Every = -1

// Link is how slow what worker From sends to worker To is to be; zeros change nothing. It lasts until another command
// or the end of either worker's process, and changes no bit of the run.
type Link struct {
	From   int           `cbor:"0,keyasint"`           // or Every
	To     int           `cbor:"1,keyasint"`           // or Every
	Rate   int64         `cbor:"2,keyasint,omitempty"` // bytes a second
	Delay  time.Duration `cbor:"3,keyasint,omitempty"`
	Jitter time.Duration `cbor:"4,keyasint,omitempty"` // at most so much more
	Loss   float64       `cbor:"5,keyasint,omitempty"` // share of packets, 0 to 1
}

func (l Link) String() string {
	name := func(w int) string {
		if w == Every {
			return "every worker"
		}
		return fmt.Sprintf("worker %d", w)
	}
	what := "as fast as it can be"
	if l.Slow() {
		what = ""
		for _, x := range []struct {
			on   bool
			text string
		}{{l.Rate > 0, fmt.Sprintf("%.3g MB/s", float64(l.Rate)/1e6)}, {l.Delay > 0, l.Delay.String() + " late"}, {l.Jitter > 0, "up to " + l.Jitter.String() + " of jitter"}, {l.Loss > 0, fmt.Sprintf("%.3g%% lost", 100*l.Loss)}} {
			if x.on && what != "" {
				what += ", "
			}
			if x.on {
				what += x.text
			}
		}
	}
	return fmt.Sprintf("%s to %s: %s", name(l.From), name(l.To), what)
}

// Slow reports whether the link is slowed down.
func (l Link) Slow() bool { return l.Rate > 0 || l.Delay > 0 || l.Jitter > 0 || l.Loss > 0 }

// Receipt answers a command. What is accepted is in the log before the receipt leaves. An edit is staged: it gets its
// round with the next grant or plan, at once while the run is paused, and is in effect once a commit lies beyond that
// round. What a kill of the coordinator overtakes in between is obeyed when the run goes on.
type Receipt struct {
	ID       uint64 `cbor:"0,keyasint"`
	Accepted bool   `cbor:"1,keyasint"`
	Round    uint64 `cbor:"2,keyasint,omitempty"` // first round that can be governed
	Reason   string `cbor:"3,keyasint,omitempty"` // of a refusal: a sentence that says what to do
	Typed    bool   `cbor:"4,keyasint,omitempty"` // the refusal is of what was typed, and every run would give it
}
