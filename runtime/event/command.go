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
	Limit     *Limit    `cbor:"6,keyasint,omitempty"` // with Resume: the new limit
	Worker    int       `cbor:"7,keyasint,omitempty"` // with Kill, Cordon, Drain and Uncordon
	Link      *Link     `cbor:"8,keyasint,omitempty"` // slow down a link, or restore it
	// reason given by the operator, see [MaxWhy]; it is stored in the edits
	Why string `cbor:"10,keyasint,omitempty"`
	// algorithm for which Set and Members are intended: the command is rejected if another one runs or takes over
	Of string `cbor:"9,keyasint,omitempty"`
}

// MaxWhy is the maximum length of the reason of a command, in characters. It is a single line.
const MaxWhy = 200

// Setting sets a knob to a value or schedule, as the user typed it. The knob "members" is the population size.
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
	Cordon   Action = "cordon"   // a worker hosts no members from the next plan on
	Drain    Action = "drain"    // the same, and its members move to the others now
	Uncordon Action = "uncordon" // the worker hosts members again, now
)

// Every stands for all workers.
const Every = -1

// Link shapes the traffic from worker From to worker To. Zero fields do not limit it. It lasts until another command or
// the end of either worker's process. It does not change the results of the run.
type Link struct {
	From   int           `cbor:"0,keyasint"`           // or Every
	To     int           `cbor:"1,keyasint"`           // or Every
	Rate   int64         `cbor:"2,keyasint,omitempty"` // bytes per second
	Delay  time.Duration `cbor:"3,keyasint,omitempty"`
	Jitter time.Duration `cbor:"4,keyasint,omitempty"` // maximum additional delay
	Loss   float64       `cbor:"5,keyasint,omitempty"` // share of lost packets, 0 to 1
}

// String describes the link, for example "worker 1 to worker 2: 1.25 MB/s, 20ms delay".
func (l Link) String() string {
	name := func(w int) string {
		if w == Every {
			return "every worker"
		}
		return fmt.Sprintf("worker %d", w)
	}
	what := "no limit"
	if l.Slow() {
		what = ""
		for _, x := range []struct {
			on   bool
			text string
		}{
			{l.Rate > 0, fmt.Sprintf("%.3g MB/s", float64(l.Rate)/1e6)},
			{l.Delay > 0, l.Delay.String() + " delay"},
			{l.Jitter > 0, "up to " + l.Jitter.String() + " of jitter"},
			{l.Loss > 0, fmt.Sprintf("%.3g%% lost", 100*l.Loss)},
		} {
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

// Receipt answers a command. An accepted command is in the log before the receipt is sent. Its edits are staged: they
// get their round with the next grant or plan, immediately while the run is paused, and are in effect once a later
// round is committed. If the coordinator is killed before that, the command is applied when the run is resumed.
type Receipt struct {
	ID       uint64 `cbor:"0,keyasint"`
	Accepted bool   `cbor:"1,keyasint"`
	Round    uint64 `cbor:"2,keyasint,omitempty"` // first round in which the command can be in effect
	Reason   string `cbor:"3,keyasint,omitempty"` // of a rejection: a sentence with the cause and what to do
	Usage    bool   `cbor:"4,keyasint,omitempty"` // the rejection is a usage error that every run would return
}
