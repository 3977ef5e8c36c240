// Package view folds the records of a run into what a screen shows. A View is plain data: the same records give the
// same View whatever the batches they came in, it survives CBOR, and its size depends on the population and not on how
// long the run has trained. It imports the seam, the records and the timeline, and knows no clock: time is what records
// say.
//
//	v := view.New()
//	for _, r := range records {
//		v.Apply(r)
//	}
//	loss := v.Find("loss")
//	band := loss.Band(view.Even(0, v.Progress.Rounds, 120)) // min and max over members for each of 120 columns
package view

import (
	"errors"
	"slices"

	"brood/models/engine"
	"brood/optim/collective"
	"brood/runtime/axis"
	"brood/runtime/event"
)

// Whole is the member of a value that belongs to the whole population.
const Whole = engine.None

// Series that the runtime measures for every algorithm. An algorithm's own carry the names it declares.
const (
	CentreLoss = event.SeriesCentre  // scalar, nats: loss of the centre on validation samples
	Fitness    = event.SeriesFitness // per member, on validation samples: higher is better
	Spread     = event.SeriesSpread  // per member: RMS distance to the centre
	Parent     = "parent"            // per member: whose child it is since the round, of algorithms that breed
	Founder    = "founder"           // per member: the first of its line, which the view works out of parents
	// of each member whom it met in the round, of algorithms that pair: the view keeps them as Meetings alone
	Partner     = "partner"
	TestFitness = event.SeriesTestFitness
	TestError   = event.SeriesTestError
	TestBits    = event.SeriesTestBits
	TestHamming = event.SeriesTestHamming
	TestRMSE    = event.SeriesTestRMSE
	TestR2      = event.SeriesTestR2
	TestLoss    = event.SeriesTestLoss
)

// Position counts the records that were folded; it is also the index of the next one.
type Position = uint64

// Batch is consecutive records as a source hands them on.
type Batch struct {
	Records []event.Record
	Next    Position // after the last of Records
	Live    bool     // there was nothing further to read at that moment
}

// ErrKilled is of a source whose run is recorded by no process any more, and whose log does not say that it ended.
var ErrKilled = errors.New("the process of the run is gone, and did not say that it ends")

// ErrNoProcess is of a source on another machine, which says that no process has the run's address any more. Whether it
// was killed or ended after the way there was cut, it cannot say.
var ErrNoProcess = errors.New("no process listens at the run's address any more: it was killed, or has ended")

// View is the state of a run at a position. Apply is its only writer; everything that it points to is never changed, so
// Clone shares it.
type View struct {
	Position Position       `cbor:"0,keyasint"`
	Config   *event.Config  `cbor:"1,keyasint,omitempty"`
	Plan     *event.Plan    `cbor:"2,keyasint,omitempty"` // of the membership epoch that was announced last
	State    event.State    `cbor:"3,keyasint"`
	Limit    event.Limit    `cbor:"4,keyasint"`
	Progress event.Progress `cbor:"5,keyasint"`

	First   int64 `cbor:"6,keyasint"` // Unix nanoseconds of the first record
	Last    int64 `cbor:"7,keyasint"` // and of the last
	Trained int64 `cbor:"8,keyasint"` // nanoseconds between records in phase training

	Rates  Rates   `cbor:"9,keyasint"`
	Ledger Ledger  `cbor:"10,keyasint"`
	Hash   string  `cbor:"11,keyasint"` // of all blocks, as last committed
	Edits  []Edit  `cbor:"12,keyasint"` // in the order of the log
	Marks  []Mark  `cbor:"13,keyasint"` // edits, resizes, swaps, losses: by round
	Lane   []Entry `cbor:"14,keyasint"` // the last events, oldest first
	Events uint64  `cbor:"15,keyasint"` // how many there were

	Evaluation  *event.Evaluation `cbor:"16,keyasint,omitempty"` // the last one
	BestError   float64           `cbor:"17,keyasint"`           // the best score of all evaluations
	Evaluations uint64            `cbor:"18,keyasint"`
	Checkpoint  *event.Checkpoint `cbor:"19,keyasint,omitempty"` // the last one
	Series      []Series          `cbor:"20,keyasint"`           // in the order of their first points
	Meetings    *Meetings         `cbor:"21,keyasint,omitempty"` // nil where the algorithm does not pair
	// payload a round of each operation that sent some, see [Excess]
	Traffic []Series `cbor:"22,keyasint,omitempty"`
	Fold    int      `cbor:"23,keyasint"` // version of the fold that made it, see [Fold]

	Machines  []Series `cbor:"24,keyasint,omitempty"` // of each [event.Measure] and [Samples], by [Process]
	Processes []int    `cbor:"25,keyasint,omitempty"` // that were measured last, ascending: workers, and [event.Here]
	Speed     []Series `cbor:"26,keyasint,omitempty"` // [RoundsASecond] and [SamplesASecond]

	Clock axis.Clock `cbor:"27,keyasint"` // how far the run was on other axes than that of rounds
}

// Edit is a change of a knob with what it replaced.
type Edit struct {
	event.Edit
	Old  string `cbor:"16,keyasint,omitempty"` // expression it replaced; "" for the algorithm's default
	When int64  `cbor:"17,keyasint"`           // Unix nanoseconds of its record
	Void bool   `cbor:"18,keyasint,omitempty"` // its algorithm has been swapped for another and taken over again since
}

// Mark is a point on the round axis that explains the curves after it.
type Mark struct {
	Round uint64 `cbor:"0,keyasint"`
	Text  string `cbor:"1,keyasint"` // short: "ell 25→10"
	Alert bool   `cbor:"2,keyasint,omitempty"`
	Who   string `cbor:"3,keyasint,omitempty"` // of an edit: who made it, and why, as event.Edit.Whose has it
	// of a change of the population: how many members there were, and are; 0 of others
	Before int `cbor:"4,keyasint,omitempty"`
	After  int `cbor:"5,keyasint,omitempty"`

	Swap bool `cbor:"6,keyasint,omitempty"` // another algorithm takes over
}

// Entry is a line of the event lane.
type Entry struct {
	At      Position    `cbor:"0,keyasint"` // of its record: the name under which a viewer acknowledges it
	When    int64       `cbor:"1,keyasint"` // Unix nanoseconds
	Trained int64       `cbor:"2,keyasint"` // nanoseconds of training before it
	Round   uint64      `cbor:"3,keyasint"`
	Level   event.Level `cbor:"4,keyasint"`
	Kind    string      `cbor:"5,keyasint"` // edit, plan, alert, checkpoint, state
	Text    string      `cbor:"6,keyasint"`

	Alert    event.AlertKind `cbor:"7,keyasint,omitempty"` // of an alert, its kind
	Answered bool            `cbor:"8,keyasint,omitempty"` // what it told of is over
}

// Fold is the version of Apply. A view that was saved by another lacks what this one would have folded.
const Fold = 8

// What a View keeps of lists that grow with a run's age.
const (
	maxLane  = 512
	maxMarks = 512
)

// New is the view of an empty log.
func New() *View { return &View{State: event.State{Phase: event.Waiting}, Fold: Fold} }

// Clone is an independent snapshot: neither sees what is applied to the other. Its cost does not depend on the number
// of points, since sealed buckets are shared.
func (v *View) Clone() *View {
	c := *v
	c.Edits, c.Marks, c.Lane = slices.Clip(v.Edits), slices.Clip(v.Marks), slices.Clip(v.Lane)
	v.Edits, v.Marks, v.Lane = slices.Clip(v.Edits), slices.Clip(v.Marks), slices.Clip(v.Lane)
	c.Ledger, c.Meetings = v.Ledger.clone(), v.Meetings.clone()
	c.Series, c.Traffic = cloneAll(v.Series), cloneAll(v.Traffic)
	c.Machines, c.Speed = cloneAll(v.Machines), cloneAll(v.Speed)
	c.Clock = v.Clock.Clone()
	return &c
}

func cloneAll(all []Series) []Series {
	out := slices.Clone(all)
	for i := range out {
		out[i] = all[i].clone()
	}
	return out
}

// Find is the series of that name, nil when nothing was measured under it.
func (v *View) Find(name string) *Series {
	return find(v.Series, name)
}

// Members is the population's roster, empty before the first plan.
func (v *View) Members() collective.Roster {
	if v.Plan == nil {
		return collective.Roster{}
	}
	return v.Plan.New
}

// Algorithm is the name of the one that runs, "" before the first plan.
func (v *View) Algorithm() string {
	if v.Plan == nil {
		return ""
	}
	return v.Plan.Algorithm
}

// Running says whether rounds are being done.
func (v *View) Running() bool { return v.State.Phase == event.Training }

// Over says whether the run has ended; it may still be resumed.
func (v *View) Over() bool { return v.State.Phase.Over() }
