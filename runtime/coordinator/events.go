package coordinator

import (
	"brood/runtime/event"
	"brood/runtime/message"
)

// Event is what happens to a run: the only way into the core. The set is closed, and Step panics at one that it does
// not know.
type Event interface{ isEvent() }

// Effect is what the shell is to do; effects are carried out in their order. The set is closed, and a shell knows all
// of them.
type Effect interface{ isEffect() }

// Events.
type (
	// Joined says that a worker is there. Its number was never used before; its key is the same each time that it comes
	// back, and empty for all workers of the coordinator's own process.
	Joined struct {
		Worker int
		Key    string
	}
	// Lost says that a worker is gone, with all that it held.
	Lost struct {
		Worker int
		Reason string
	}
	// Report is what a worker says. It is checked before anything uses it.
	Report struct{ message.Report }
	// Alike says that a worker reports of a grant what another one does, in its own name: its members are in the place of
	// the other's, which are as many, and of points, notes and a prediction it has none. Of thousands of workers that are
	// not run such reports come. Of is changed by nobody while the grant is out, so that it is checked once.
	Alike struct {
		Worker int
		Of     *message.Done
	}
	// Command is what an operator asks. One Receipt answers it.
	Command struct{ event.Command }
	// Trouble is something around the run that a person must mend before it goes on, such as a full disk. Nothing is
	// lost.
	Trouble struct {
		Why    event.PauseReason
		Reason string
	}
	// Note is something around the run that a reader of its log should know.
	Note struct {
		Level event.Level // "" for info
		Kind  event.AlertKind
		Text  string
	}
	// Measured is what machines measure of themselves. It goes into the log, and nothing is decided by it.
	Measured struct{ Of []event.Machine }
	// Interrupt asks to finish the round, save and leave.
	Interrupt struct{}
	// Tick lets time pass.
	Tick struct{}
)

func (Joined) isEvent()    {}
func (Lost) isEvent()      {}
func (Report) isEvent()    {}
func (*Alike) isEvent()    {}
func (Command) isEvent()   {}
func (Trouble) isEvent()   {}
func (Note) isEvent()      {}
func (Measured) isEvent()  {}
func (Interrupt) isEvent() {}
func (Tick) isEvent()      {}

// Effects.
type (
	// Send brings an order to a worker.
	Send struct {
		Worker int
		Msg    message.Order
	}
	// Dismiss lets a worker go that holds nothing any more.
	Dismiss struct{ Worker int }
	// Append writes a record to the log, before any message behind it leaves.
	Append struct{ Record event.Record }
	// Receipt answers a command, once the records behind it are in the log.
	Receipt struct{ event.Receipt }
	// Exit ends the run.
	Exit struct {
		Phase  event.Phase
		Reason string
		Missed string // the target that was not met when the run was at another limit, else ""
		Branch uint64 // where a block was not finite: the newest round that is known to be sane; else 0
	}
)

func (Send) isEffect()    {}
func (Dismiss) isEffect() {}
func (Append) isEffect()  {}
func (Receipt) isEffect() {}
func (Exit) isEffect()    {}
func (*Fault) isEffect()  {}
