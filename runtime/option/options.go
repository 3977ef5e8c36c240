package option

import (
	"math"

	"brood/runtime/event"
)

// Options is the request for a run. Zero fields have defaults. The typed options are also in the table [All]; the
// caller sets the other fields.
type Options struct {
	Algorithm string // default dp-sgd
	Model     string // see the option model
	Data      string // default glyphs
	// changes of drawn samples, see [brood/models/data.ParseAugment]; default none
	Augment    string
	Members    int    // default 4; or [Auto]
	Workers    int    // goroutines that compute them; default 1
	Threads    int    // of all workers together; default all of the machine
	Device     string // see [ParseDevice]; default that of $BROOD_ENGINE, else the processor
	Wait       int    // remote ones among Workers; above 0, the memory of this machine is no bound
	MinWorkers int    // the run waits while it has fewer
	Audit      float64
	Seed       uint64
	Limit      event.Limit // default 10 epochs
	Probe      uint64      // rounds between probes; 0: brood selects
	Evaluate   uint64
	OnLoss     string
	OnTrouble  string // wait, stop or back; default wait
	Init       string // path of a safetensors file with initial parameters

	// More holds the options of the table that have no field here, as text by name. It is immutable: [Option.Set] replaces
	// it.
	More map[string]string

	Preset string          // its name, to be recorded
	Rules  []byte          // for an algorithm without a model, see [brood/optim.Algorithm]
	Base   []event.Setting // knobs that the preset sets
	Set    []event.Setting // knobs that a person sets; they override Base
	Unused string          // algorithm whose knobs the preset sets, if the run has another one
	By     string          // who set Set
	Own    Own             `cbor:"-"` // used instead of Model; nil: none. It stays in this process

	// Unattended means that no person observes the run: OnTrouble is stop by default.
	Unattended bool
}

// Own is the model of a Go program: a *host.Own.
type Own interface{ OwnName() string }

// Auto as a number of members requests the most that fit into the memory and keep all threads busy.
const Auto = math.MinInt32
