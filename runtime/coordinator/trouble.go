package coordinator

import (
	"brood/models/engine"
	"brood/runtime/event"
)

// Trouble is something around the run that a person must mend before it goes on, such as a full disk. Nothing is lost.
type Trouble struct{ Kind, Reason string }

// Note is something around the run that a reader of its log should know.
type Note struct{ Kind, Text string }

func (c *Coordinator) troubled(e Trouble) []any {
	if c.phase == event.Paused || c.ending != nil {
		return nil
	}
	return []any{c.alert("error", e.Kind, e.Reason, engine.None), c.enter(event.Paused, e.Reason)}
}
