package coordinator

import (
	"brood/runtime/event"
	"brood/runtime/message"
)

// Event is an input of the core. The set is closed; Step panics on an unknown event.
type Event interface{ isEvent() }

// Effect is an output of the core. The shell carries effects out in order. The set is closed, and a shell must handle
// all of them.
type Effect interface{ isEffect() }

// Events.
type (
	// Joined announces a worker. Its number was never used before. Key identifies the same worker when it returns; it
	// is empty for all workers in the coordinator's process.
	Joined struct {
		Worker int
		Key    string
		// equal for workers that can exchange frames without a network; "": it shares its machine with no other
		Machine string
		Held    *message.Held // rows of the committed state that it holds; nil: none
	}
	// Lost reports that a worker is gone, with the state of its members.
	Lost struct {
		Worker int
		Reason string
	}
	// Report is a message of a worker. The core checks it before use.
	Report struct{ message.Report }
	// Command is a command of an operator. The core answers it with one Receipt.
	Command struct{ event.Command }
	// Trouble is a fault outside the run, such as a full disk, that a person must fix before the run can continue. No
	// state is lost.
	Trouble struct {
		Why    event.PauseReason
		Reason string
	}
	// Note is information from the shell for readers of the log. It becomes an alert.
	Note struct {
		Level event.Level // "" for info
		Kind  event.AlertKind
		Text  string
	}
	// Recomputed answers Recompute with the saved state after the last commit, whose hash is that of the commit.
	Recomputed struct{ Checkpoint event.Checkpoint }
	// Measured holds measurements of the machines. It is logged and influences no decision.
	Measured struct{ Of []event.Machine }
	// Interrupt asks the run to finish its round, save and exit.
	Interrupt struct{}
	// Tick advances the clock.
	Tick struct{}
)

func (Joined) isEvent()     {}
func (Lost) isEvent()       {}
func (Report) isEvent()     {}
func (Command) isEvent()    {}
func (Trouble) isEvent()    {}
func (Note) isEvent()       {}
func (Recomputed) isEvent() {}
func (Measured) isEvent()   {}
func (Interrupt) isEvent()  {}
func (Tick) isEvent()       {}

// Effects.
type (
	// Send sends an order to a worker.
	Send struct {
		Worker int
		Msg    message.Order
	}
	// Release releases a worker that leaves and hosts no members.
	Release struct{ Worker int }
	// Append writes a record to the log, before the shell sends any message after it.
	Append struct{ Record event.Record }
	// Receipt answers a command. The shell delivers it after the records before it are in the log.
	Receipt struct{ event.Receipt }
	// Recompute orders the state after the last commit from the log. The shell answers with Recomputed.
	Recompute struct{}
	// Exit ends the run.
	Exit struct {
		Phase  event.Phase
		Reason string
		Missed string // the target that was not met when another limit ended the run; else ""
		Branch uint64 // if a block was not finite: the newest round known to be good, from which to branch; else 0
	}
)

func (Send) isEffect()      {}
func (Release) isEffect()   {}
func (Append) isEffect()    {}
func (Receipt) isEffect()   {}
func (Recompute) isEffect() {}
func (Exit) isEffect()      {}
func (*Fault) isEffect()    {}
