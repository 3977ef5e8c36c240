// Package view folds the records of a run into the state that screens show. A View is plain data: it depends only on
// the records and not on how they are batched, it can be encoded as CBOR, and its size depends on the population but
// not on the length of the run. The package imports the engine and algorithm interfaces, the records and the timeline.
// It uses no clock: times come from the records.
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

// Whole is the member id of a value of the whole population.
const Whole = engine.None

// Names of series that the runtime measures. The series of an algorithm have the names that it declares.
const (
	CentreLoss = event.SeriesCentre  // scalar, nats: loss of the centre on validation samples
	Fitness    = event.SeriesFitness // per member, on validation samples: higher is better
	Spread     = event.SeriesSpread  // per member: RMS distance to the centre
	Parent     = "parent"            // per member: its parent, for algorithms with inheritance
	Founder    = "founder"           // per member: its first ancestor, which the view derives from Parent
	// per member: its partner in the round, for algorithms that pair members; the view stores them only as Meetings
	Partner     = "partner"
	TestFitness = event.SeriesTestFitness
	TestError   = event.SeriesTestError
	TestBits    = event.SeriesTestBits
	TestHamming = event.SeriesTestHamming
	TestRMSE    = event.SeriesTestRMSE
	TestR2      = event.SeriesTestR2
	TestLoss    = event.SeriesTestLoss
)

// Position is the number of applied records, which is also the index of the next one.
type Position = uint64

// Batch is a sequence of consecutive records from a source.
type Batch struct {
	Records []event.Record
	Next    Position // position after the last of Records
	Live    bool     // there were no further records at that time
}

// ErrKilled is returned by a source if no process records the run any more but its log has no end of the run.
var ErrKilled = errors.New("the process of the run exited without recording the end of the run")

// ErrNoProcess is returned by a remote source if no process listens at the address of the run any more. The source
// cannot know whether the run was killed or ended after the connection was lost.
var ErrNoProcess = errors.New("no process listens at the address of the run any more: it was killed or has ended")

// View is the state of a run at a position. Only Apply modifies it. Data behind its pointers are immutable, so that
// Clone can share them. It is not safe for concurrent use.
type View struct {
	Position Position       `cbor:"0,keyasint"`
	Config   *event.Config  `cbor:"1,keyasint,omitempty"`
	Plan     *event.Plan    `cbor:"2,keyasint,omitempty"` // the latest plan
	State    event.State    `cbor:"3,keyasint"`
	Limit    event.Limit    `cbor:"4,keyasint"`
	Progress event.Progress `cbor:"5,keyasint"`

	First   int64 `cbor:"6,keyasint"` // Unix nanoseconds of the first record
	Last    int64 `cbor:"7,keyasint"` // Unix nanoseconds of the last record
	Trained int64 `cbor:"8,keyasint"` // training time in nanoseconds

	Rates  Rates   `cbor:"9,keyasint"`
	Ledger Ledger  `cbor:"10,keyasint"`
	Hash   string  `cbor:"11,keyasint"` // hash of all blocks in the last commit
	Edits  []Edit  `cbor:"12,keyasint"` // in the order of the log
	Marks  []Mark  `cbor:"13,keyasint"` // edits, resizes, swaps and losses, by round
	Lane   []Entry `cbor:"14,keyasint"` // event list: the last events, oldest first
	Events uint64  `cbor:"15,keyasint"` // number of all events

	Evaluation  *event.Evaluation `cbor:"16,keyasint,omitempty"` // the last one
	BestError   float64           `cbor:"17,keyasint"`           // the best score of all evaluations
	Evaluations uint64            `cbor:"18,keyasint"`
	Checkpoint  *event.Checkpoint `cbor:"19,keyasint,omitempty"` // the last one
	Series      []Series          `cbor:"20,keyasint"`           // in the order of their first points
	Meetings    *Meetings         `cbor:"21,keyasint,omitempty"` // nil if the algorithm does not pair members
	// payload bytes per round of each operation that sent any, and [Excess]
	Traffic []Series `cbor:"22,keyasint,omitempty"`
	Fold    int      `cbor:"23,keyasint"` // version of Apply that built it, see [Fold]

	Machines  []Series `cbor:"24,keyasint,omitempty"` // by [Process], except [Between], by [LinkOf]
	Processes []int    `cbor:"25,keyasint,omitempty"` // in the last measurement, ascending; with [event.Here]
	Speed     []Series `cbor:"26,keyasint,omitempty"` // [RoundsASecond] and [SamplesASecond]

	Clock axis.Clock `cbor:"27,keyasint"` // converts rounds to other axes

	Committed int64 `cbor:"28,keyasint"` // Trained at the last commit, in nanoseconds
	Before    int64 `cbor:"32,keyasint"` // Trained when the run was resumed last, in nanoseconds
	Tally     Tally `cbor:"29,keyasint"`
	// the next records that the view contains already, see [event.Beginning]
	Within uint64 `cbor:"31,keyasint,omitempty"`

	Turns []turn `cbor:"30,keyasint,omitempty"` // changes whose [Effect] is not known yet, by round
}

// Edit is a change of a knob and the expression that it replaced.
type Edit struct {
	event.Edit
	Old  string `cbor:"16,keyasint,omitempty"` // replaced expression; "" for the default of the algorithm
	When int64  `cbor:"17,keyasint"`           // Unix nanoseconds of its record
	Void bool   `cbor:"18,keyasint,omitempty"` // a later swap to its algorithm has reset the knob
}

// Mark is a point on the round axis that explains the curves after it.
type Mark struct {
	Round uint64 `cbor:"0,keyasint"`
	Text  string `cbor:"1,keyasint"` // short: "ell 25→10"
	Alert bool   `cbor:"2,keyasint,omitempty"`
	Who   string `cbor:"3,keyasint,omitempty"` // of an edit: its author and reason, see event.Edit.Whose
	// of a resize: number of members before and after; otherwise 0
	Before int `cbor:"4,keyasint,omitempty"`
	After  int `cbor:"5,keyasint,omitempty"`

	Swap bool `cbor:"6,keyasint,omitempty"` // the algorithm changes

	Effect *Effect `cbor:"7,keyasint,omitempty"` // of all changes in this round, on the last mark of it; nil: unknown
}

// Entry is an entry of the event list.
type Entry struct {
	At      Position    `cbor:"0,keyasint"` // position of its record, by which viewers acknowledge it
	When    int64       `cbor:"1,keyasint"` // Unix nanoseconds
	Trained int64       `cbor:"2,keyasint"` // training time before it, in nanoseconds
	Round   uint64      `cbor:"3,keyasint"`
	Level   event.Level `cbor:"4,keyasint"`
	Kind    string      `cbor:"5,keyasint"` // edit, effect, evaluation, plan, alert, checkpoint, state
	Text    string      `cbor:"6,keyasint"`

	Alert    event.AlertKind `cbor:"7,keyasint,omitempty"` // kind of the alert; "" for other entries
	Answered bool            `cbor:"8,keyasint,omitempty"` // the condition of the alert is over

	Effect *Effect `cbor:"9,keyasint,omitempty"` // of an entry of KindEffect
}

// Kinds of entries that screens show in a special way.
const (
	KindCheckpoint = "checkpoint" // a saved checkpoint
	KindEvaluation = "evaluation" // the best test score so far
	KindEffect     = "effect"     // of a change, see [Effect]
)

// Fold is the version of Apply. A view that was saved by another version may lack data.
const Fold = 12

// Maximum lengths of lists that grow with the length of a run.
const (
	maxLane  = 512
	maxMarks = 512
)

// New returns the view of an empty log.
func New() *View { return &View{State: event.State{Phase: event.Waiting}, Fold: Fold} }

// Clone returns an independent copy: records applied to one do not affect the other. Its cost does not depend on the
// number of points, since the copies share sealed buckets.
func (v *View) Clone() *View {
	c := *v
	c.Edits, c.Marks, c.Lane = slices.Clip(v.Edits), slices.Clip(v.Marks), slices.Clip(v.Lane)
	v.Edits, v.Marks, v.Lane = slices.Clip(v.Edits), slices.Clip(v.Marks), slices.Clip(v.Lane)
	c.Turns, v.Turns = slices.Clip(v.Turns), slices.Clip(v.Turns)
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

// Find returns the series with the name; nil if it has no points.
func (v *View) Find(name string) *Series {
	return find(v.Series, name)
}

// Members returns the roster of the population; it is empty before the first plan.
func (v *View) Members() collective.Roster {
	if v.Plan == nil {
		return collective.Roster{}
	}
	return v.Plan.New
}

// Algorithm returns the name of the current algorithm; "" before the first plan.
func (v *View) Algorithm() string {
	if v.Plan == nil {
		return ""
	}
	return v.Plan.Algorithm
}

// Running reports whether the run is training.
func (v *View) Running() bool { return v.State.Phase == event.Training }

// Over reports whether the run has ended; it may still be resumed.
func (v *View) Over() bool { return v.State.Phase.Over() }
