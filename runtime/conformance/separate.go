package conformance

import (
	"sync"
	"testing"

	"brood/models/engine"
	"brood/models/enginetest"
)

// separate makes engines that own their memory, and collects them.
type separate struct {
	mu   sync.Mutex
	made []*enginetest.Elsewhere
	fail func(worker int) func(task int) error // may be nil
}

func (a *separate) engine(toy *Toy) engine.Engine {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := enginetest.NewElsewhere(toy, uint64(len(a.made)))
	if a.fail != nil {
		e.Fail = a.fail(len(a.made))
	}
	a.made = append(a.made, e)
	return e
}

// clean fails the test if an engine found misuse of its memory, or if no engine was made.
func (a *separate) clean(t *testing.T) {
	t.Helper()
	if len(a.made) == 0 {
		t.Error("no engine with separate memory was made")
	}
	for i, e := range a.made {
		for _, f := range e.Faults(true) {
			t.Errorf("engine %d: %s", i, f)
		}
	}
}
