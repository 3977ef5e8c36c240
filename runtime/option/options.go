package option

import (
	"math"

	"brood/runtime/event"
)

// Options is what a person asked for. Zero fields take defaults. What has a name and can be typed stands in the table
// too, see [All]; the rest is what whoever assembles the run knows.
type Options struct {
	Algorithm string // default dp-sgd
	Model     string // name or path of a .toml file; default mlp-small. Without a model there are no data and no init
	Data      string // default glyphs
	// how its samples change where they are drawn, see [brood/models/data.ParseAugment]; default not at all
	Augment   string
	Members   int    // default 4; or [Auto]
	Workers   int    // goroutines that host them; default 1
	Threads   int    // of all workers together; default the machine's
	Device    string // that computes, see [ParseDevice]; default $BROOD_ENGINE's, else the processor
	Wait      int    // of Workers, those that come in from other processes: with any, this one's memory bounds nothing
	Seed      uint64
	Limit     event.Limit // default 10 epochs
	Probe     uint64      // rounds between probes; 0 chooses
	Evaluate  uint64
	OnLoss    string
	OnTrouble string // wait, stop or back; default wait
	Init      string // path of a safetensors file with initial parameters

	// More holds the options of the table that have no field here, as text by name. It is not written to: [Option.Set]
	// makes another.
	More map[string]string

	Preset string          // its name, for the record
	Rules  []byte          // what an algorithm without a model may be given instead of one, see [brood/optim.Algorithm]
	Base   []event.Setting // knobs that the preset sets
	Set    []event.Setting // knobs that somebody sets, after those of Base
	By     string          // who set them
	Own    Own             `cbor:"-"` // a graph in place of Model; nil: none. No other process can be given it

	// Unattended says that nobody looks at the run: the default of OnTrouble is stop.
	Unattended bool
}

// Own is a model that a Go program brings itself: a *host.Own.
type Own interface{ OwnName() string }

// Auto, as a number of members, asks for as many as keep all threads busy and fit into the memory.
const Auto = math.MinInt32
