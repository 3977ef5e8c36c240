package conformance

import (
	"sync"
	"testing"

	"brood/models/engine"
	"brood/models/enginetest"
)

// abroad gives a rig engines whose memory is elsewhere, and collects them.
type abroad struct {
	mu   sync.Mutex
	made []*enginetest.Elsewhere
	fail func(worker int) func(task int) error // may be nil
}

func (a *abroad) engine(toy *Toy) engine.Engine {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := enginetest.NewElsewhere(toy, uint64(len(a.made)))
	if a.fail != nil {
		e.Fail = a.fail(len(a.made))
	}
	a.made = append(a.made, e)
	return e
}

// clean fails the test where memory was misused, or where no engine was asked for.
func (a *abroad) clean(t *testing.T) {
	t.Helper()
	if len(a.made) == 0 {
		t.Error("no engine was made: nothing was tried elsewhere")
	}
	for i, e := range a.made {
		for _, f := range e.Faults(true) {
			t.Errorf("engine %d: %s", i, f)
		}
	}
}
