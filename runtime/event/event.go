// Package event defines the records of a run's log: its one truth. The coordinator writes them, verify and resume
// consume them, and every screen is a fold over them. It imports the seam only.
package event

import (
	"math"
	"slices"
	"strings"

	"brood/models/engine"
	"brood/optim"
)

// Record is one entry of the log. Exactly one of the pointers is set.
type Record struct {
	At int64 `cbor:"0,keyasint"` // Unix nanoseconds when it was written

	Config     *Config     `cbor:"1,keyasint,omitempty"`
	Plan       *Plan       `cbor:"2,keyasint,omitempty"`
	Edit       *Edit       `cbor:"3,keyasint,omitempty"`
	Commit     *Commit     `cbor:"4,keyasint,omitempty"`
	Points     *Points     `cbor:"5,keyasint,omitempty"`
	Evaluation *Evaluation `cbor:"6,keyasint,omitempty"`
	Alert      *Alert      `cbor:"7,keyasint,omitempty"`
	Checkpoint *Checkpoint `cbor:"8,keyasint,omitempty"`
	State      *State      `cbor:"9,keyasint,omitempty"`
	Accepted   *Accepted   `cbor:"10,keyasint,omitempty"`
	Machines   *Machines   `cbor:"11,keyasint,omitempty"`
}

// Essential records must survive: they are written before the messages that rely on them leave. Only points,
// evaluations and what machines measure may wait.
func (r Record) Essential() bool { return r.Points == nil && r.Evaluation == nil && r.Machines == nil }

// NoTest as [Config.Evaluate] leaves out the test and the probe that end a run, too, and the probe of its first round:
// it trains to be timed.
const NoTest = ^uint64(0)

// Config opens a log: what cannot change while the run lives.
type Config struct {
	Version   int    `cbor:"0,keyasint"` // of the log's vocabulary
	Preset    string `cbor:"1,keyasint"` // its name, "" for flags alone
	Model     string `cbor:"2,keyasint"` // name
	ModelSpec string `cbor:"3,keyasint"` // the layer list as TOML; with Own what the graph looks like
	Data      string `cbor:"4,keyasint"` // name
	Digest    string `cbor:"5,keyasint"` // of the data, "blake3:..."
	Seed      uint64 `cbor:"6,keyasint"`
	// kind that produced the bits: f32/1, or engine/library/architecture; before f32/1 native/twin/architecture
	Kernels  string `cbor:"7,keyasint"`
	Direct   int    `cbor:"8,keyasint"`  // collectives up to this many bytes go in one hop
	Probe    uint64 `cbor:"9,keyasint"`  // rounds between probes of the centre on validation samples; 0 never
	Evaluate uint64 `cbor:"10,keyasint"` // rounds between test evaluations; 0: at the end of each epoch; [NoTest]: never
	OnLoss   string `cbor:"11,keyasint"` // reseed, rollback, shrink
	Parent   string `cbor:"12,keyasint"` // session this run was forked from
	ParentAt uint64 `cbor:"13,keyasint"` // and the round
	Params   int    `cbor:"14,keyasint"`
	Stats    int    `cbor:"15,keyasint"`
	Limit    Limit  `cbor:"16,keyasint"`
	Init     *File  `cbor:"17,keyasint,omitempty"` // initial parameters given by a person
	Train    int    `cbor:"18,keyasint"`           // samples
	Valid    int    `cbor:"19,keyasint"`
	Test     int    `cbor:"20,keyasint"`
	Memory   int64  `cbor:"21,keyasint,omitempty"` // bytes the run was expected to need when it began
	// 22 was the estimated time of older logs
	Own bool `cbor:"23,keyasint,omitempty"` // the model is a graph of a Go program's own, which is not in the log
	// how samples change where they are drawn for training, see data.ParseAugment
	Augment   string `cbor:"24,keyasint,omitempty"`
	OnTrouble string `cbor:"26,keyasint,omitempty"` // wait, stop, back; "": wait where a terminal looks, else stop
	Reading   int    `cbor:"25,keyasint,omitempty"` // the rule by which a person's own data were read, see data.RuleFirst

	// options that have no key of their own, by name, see package option
	Told map[string]string `cbor:"27,keyasint,omitempty"`

	// Set are knobs that a branch is to turn in its first round: until its plans tell of them, its log knows by this
	Set []Setting `cbor:"28,keyasint,omitempty"`
	By  string    `cbor:"29,keyasint,omitempty"` // who said so

	// the program whose fitness is maximised, as its files are called; ModelSpec has its parameters and digests
	Objective string `cbor:"30,keyasint,omitempty"`

	// of the model, where that is not cross-entropy; logs of before say it in ModelSpec alone
	Loss    string   `cbor:"31,keyasint,omitempty"`
	Targets *Targets `cbor:"32,keyasint,omitempty"` // of a regression
	Metrics []string `cbor:"34,keyasint,omitempty"` // of an objective: what it measures beside the fitness
	Text    bool     `cbor:"33,keyasint,omitempty"` // the data are a text: losses are told in bits a byte too
}

// Limit says when a run is done; zero fields do not limit. A resumed run may be given another, as a State record.
type Limit struct {
	Rounds  uint64  `cbor:"0,keyasint,omitempty"`
	Epochs  float64 `cbor:"1,keyasint,omitempty"`
	Seconds float64 `cbor:"2,keyasint,omitempty"`
	Target  string  `cbor:"3,keyasint,omitempty"` // e.g. "test_error=2.8": at or below ends the run
}

// Reached says whether progress is all that the limit asks for in rounds or epochs.
func (l Limit) Reached(p Progress) bool {
	return l.Rounds > 0 && p.Rounds >= l.Rounds || l.Epochs > 0 && p.Epochs >= l.Epochs
}

// Judged says that the target is a fitness, which is then measured on validation samples, see SeriesJudged.
func (l Limit) Judged() bool { return strings.HasPrefix(l.Target, SeriesFitness+"=") }

// Part is how much of what the limit asks for in rounds or epochs is done, from 0 to 1; 0 where it asks for neither.
func (l Limit) Part(p Progress) float64 {
	part := 0.0
	if l.Epochs > 0 {
		part = p.Epochs / l.Epochs
	}
	if l.Rounds > 0 {
		part = max(part, float64(p.Rounds)/float64(l.Rounds))
	}
	return min(part, 1)
}

// Left returns the seconds until the first limit is reached, after so many seconds of training, at these rates per
// second; ok is false if no limit has a rate.
func (l Limit) Left(p Progress, trained, rounds, epochs float64) (seconds float64, ok bool) {
	seconds = math.Inf(1)
	for _, x := range []struct{ limit, done, rate float64 }{
		{float64(l.Rounds), float64(p.Rounds), rounds},
		{l.Epochs, p.Epochs, epochs},
		{l.Seconds, trained, 1},
	} {
		if x.limit > 0 && x.rate > 0 {
			seconds = min(seconds, max(0, (x.limit-x.done)/x.rate))
		}
	}
	if math.IsInf(seconds, 1) {
		return 0, false
	}
	return seconds, true
}

// MaxMembers is the largest population: a plan names all of them up to three times, with their workers, and those that
// were lost, and is one record of the log and one message (8 MiB).
const MaxMembers = 1 << 18

// MembersLabel is what screens call the knob of the population.
const MembersLabel = "population size"

// Source says where a plan takes its blocks from.
type Source string

const (
	Fresh   Source = "fresh"      // initialised from the seed
	Workers Source = "workers"    // what the survivors of the last epoch hold at round At
	Saved   Source = "checkpoint" // the checkpoint of round At, exactly its roster's members and algorithm
)

// Plan is a new epoch: from one roster, algorithm and set of blocks to another, at a committed round.
type Plan struct {
	Epoch     uint32         `cbor:"0,keyasint"`
	At        uint64         `cbor:"1,keyasint"` // rounds done
	From      Source         `cbor:"2,keyasint"`
	Old       optim.Roster   `cbor:"3,keyasint"` // of the last installed epoch; empty when Fresh
	New       optim.Roster   `cbor:"4,keyasint"`
	Lost      []optim.Member `cbor:"5,keyasint,omitempty"` // members of Old without a surviving copy
	OldAlg    string         `cbor:"6,keyasint,omitempty"`
	Algorithm string         `cbor:"7,keyasint"`
	Timeline  []Edit         `cbor:"8,keyasint,omitempty"` // edits in force, for joiners
	Base      uint32         `cbor:"9,keyasint,omitempty"` // epoch that was installed when this plan was made
	Cause     Cause          `cbor:"10,keyasint,omitempty"`
	Note      string         `cbor:"11,keyasint,omitempty"` // a sentence for the event lane
	// edits that shaped the blocks of Old, where they come from the workers
	Before []Edit `cbor:"12,keyasint,omitempty"`
	// accepted commands up to this number are in it; 0: none is new
	Obeyed uint64 `cbor:"13,keyasint,omitempty"`
}

// Edit is a change of one knob: effective from round At on. Expr is a value or a schedule as typed.
type Edit struct {
	At        uint64 `cbor:"0,keyasint"`
	Algorithm string `cbor:"1,keyasint"`
	Knob      string `cbor:"2,keyasint"`
	Expr      string `cbor:"3,keyasint"`
	By        string `cbor:"4,keyasint,omitempty"` // one of Givers, or the operator who made it
	ID        uint64 `cbor:"5,keyasint,omitempty"` // of the command that asked for it

	// Where the run stood at round At: filled in once that round is committed, for schedules in epochs or steps.
	Epochs float64 `cbor:"6,keyasint,omitempty"`
	Steps  uint64  `cbor:"7,keyasint,omitempty"`

	Obeys uint64 `cbor:"8,keyasint,omitempty"` // number of the accepted command
	// the reason that the command gave; of a choice that was left to the run (optim.Auto) what was measured
	Why string `cbor:"9,keyasint,omitempty"`
}

// Givers are who edits are by that no command asked for; nobody commands under such a name.
var Givers = []string{"preset", "flag", optim.Auto, ByModel, ByNobody}

// ByNobody is who tells a new run a knob that begins with another value than its default, see optim.Knob.
const ByNobody = "default"

// ByModel is who gives a new run the learning rate that its model states.
const ByModel = "model"

// Given says that no command asked for the edit: it is of a preset or a flag, or of the run's own choice.
func (e Edit) Given() bool { return !e.Commanded() && slices.Contains(Givers, e.By) }

// Commanded says that the edit is known to be of a command; logs from before commands were numbered do not tell.
func (e Edit) Commanded() bool { return e.Obeys != 0 || e.ID != 0 }

// First is the first round under the edit, as rounds are counted for a person: from 1.
func (e Edit) First() uint64 { return e.At + 1 }

// Whose says who made the edit, and why where that was said.
func (e Edit) Whose() string {
	if e.Why == "" {
		return e.By
	}
	return e.By + ": " + e.Why
}

// Same compares edits but for what is learnt about them later.
func (e Edit) Same(o Edit) bool {
	e.Epochs, e.Steps, o.Epochs, o.Steps = 0, 0, 0, 0
	return e == o
}

// Commit says that every worker passed round To with the state of this hash.
type Commit struct {
	Epoch    uint32   `cbor:"0,keyasint"`
	To       uint64   `cbor:"1,keyasint"` // rounds done
	Hash     string   `cbor:"2,keyasint"` // "blake3:..." over the sorted digests of all blocks
	Progress Progress `cbor:"3,keyasint"`
	// payload bytes of the committed rounds, summed over workers
	Sent       map[optim.Op]int64 `cbor:"4,keyasint,omitempty"`
	Predicted  map[optim.Op]int64 `cbor:"5,keyasint,omitempty"`
	Evaluation map[optim.Op]int64 `cbor:"6,keyasint,omitempty"` // bytes of evaluation and probes
	Aborted    int64              `cbor:"7,keyasint,omitempty"` // payload of rounds that were thrown away
	Overhead   int64              `cbor:"8,keyasint,omitempty"` // bytes on the wire beyond payload
	Rounds     uint64             `cbor:"9,keyasint"`           // rounds in this commit
	Nanos      int64              `cbor:"10,keyasint"`          // wall time of the slowest worker
	// of Nanos, in which a worker waited for others' frames: the mean over workers
	Waited int64 `cbor:"11,keyasint,omitempty"`
}

// Progress counts what the whole population did since the start: a pure function of roster and knobs.
type Progress struct {
	Rounds, Steps, Samples, Evaluations uint64
	Epochs                              float64
}

// Points are the values of one series at one round, all of them finite or NaN as measured.
type Points struct {
	Round  uint64 `cbor:"0,keyasint"` // the round that was done, counted from 1
	Series string `cbor:"1,keyasint"`
	// ascending, of edges as often as a member has one; [engine.None] for a value of the whole population
	Members []engine.Member `cbor:"2,keyasint"`
	Values  []float64       `cbor:"3,keyasint"`
}

// Evaluation is the centre's score on the test set.
type Evaluation struct {
	Round     uint64  `cbor:"0,keyasint"`
	TestError float64 `cbor:"1,keyasint"` // percent; means nothing where [Config.Graded] says so
	TestLoss  float64 `cbor:"2,keyasint"`
	Samples   int64   `cbor:"3,keyasint"`
	Centre    string  `cbor:"4,keyasint"` // "blake3:..." of the centre's parameters
	// of a regression: mean squared error of the standardised targets over samples and outputs
	Squares float64 `cbor:"5,keyasint,omitempty"`
}

// Alert is something a person may want to act on.
type Alert struct {
	Round  uint64        `cbor:"0,keyasint"`
	Level  Level         `cbor:"1,keyasint"`
	Kind   AlertKind     `cbor:"2,keyasint"`
	Text   string        `cbor:"3,keyasint"`
	Member engine.Member `cbor:"4,keyasint"`
}

// Checkpoint refers to saved blocks of a committed round.
type Checkpoint struct {
	Round     uint64       `cbor:"0,keyasint"`
	Epoch     uint32       `cbor:"1,keyasint"`
	Roster    optim.Roster `cbor:"2,keyasint"`
	Algorithm string       `cbor:"3,keyasint"`
	Hash      string       `cbor:"4,keyasint"` // of the commit
	Files     []File       `cbor:"5,keyasint"`
	Timeline  []Edit       `cbor:"6,keyasint,omitempty"` // all edits in the log before this record that still hold
	Progress  Progress     `cbor:"7,keyasint"`
}

// File is a saved shard, relative to the session directory.
type File struct {
	Path   string `cbor:"0,keyasint"`
	Digest string `cbor:"1,keyasint"`
	Bytes  int64  `cbor:"2,keyasint"`
}

// State says what the run is doing from now on.
type State struct {
	Round  uint64 `cbor:"0,keyasint"`
	Phase  Phase  `cbor:"1,keyasint"`
	Reason string `cbor:"2,keyasint,omitempty"`
	Limit  *Limit `cbor:"3,keyasint,omitempty"`
}

// Phase of a run's life.
type Phase string

const (
	Waiting  Phase = "waiting"  // for workers
	Training Phase = "training" //
	Paused   Phase = "paused"   // by a person, or by an alert
	Finished Phase = "finished" // its limit or target was reached
	Stopped  Phase = "stopped"  // by a person or a signal; may be resumed
	Failed   Phase = "failed"   // nothing survived, or the disk is full
)

// Over says whether a run has ended; it may still be resumed.
func (p Phase) Over() bool { return p == Finished || p == Stopped || p == Failed }
