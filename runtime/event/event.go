// Package event defines the records of a run's log, the single source of truth. The coordinator writes them, verify and
// resume read them, and every screen is a fold over them. It imports only the packages that define engines and
// algorithms.
package event

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/collective"
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

// Essential reports whether the record must survive a crash: it is written before the messages that rely on it are
// sent. Points, evaluations and measurements of machines are not essential and may be written later.
func (r Record) Essential() bool { return r.Points == nil && r.Evaluation == nil && r.Machines == nil }

// NoTest as [Config.Evaluate] also skips the test and the probe at the end of a run and the probe of its first round.
// It is for runs that are timed.
const NoTest = ^uint64(0)

// Config is the first record of a log. It holds the settings that cannot change during the run. The names of the fields
// of records are the keys of `brood log --json`.
type Config struct {
	// Version of the log's vocabulary. It has a late key, so that logs before v0.1, whose version had key 0, have 0.
	Version   int    `cbor:"35,keyasint"`
	Preset    string `cbor:"1,keyasint"` // its name; "" if there is none
	Model     string `cbor:"2,keyasint"` // name
	ModelSpec string `cbor:"3,keyasint"` // the layer list as TOML; with Own a description of the graph
	Data      string `cbor:"4,keyasint"` // name
	Digest    string `cbor:"5,keyasint"` // of the data, "blake3:..."
	Seed      uint64 `cbor:"6,keyasint"`
	// kernels that computed the run: f32/1, or engine/library/architecture
	Kernels  string `cbor:"7,keyasint"`
	Direct   int    `cbor:"8,keyasint"`  // collectives of at most this many bytes take one hop
	Probe    uint64 `cbor:"9,keyasint"`  // rounds between probes of the centre on validation samples; 0: never
	Evaluate uint64 `cbor:"10,keyasint"` // rounds between test evaluations; 0: at the end of each epoch; [NoTest]: never
	OnLoss   string `cbor:"11,keyasint"` // reseed, rollback, shrink, mirror
	Parent   string `cbor:"12,keyasint"` // session this run was forked from
	ParentAt uint64 `cbor:"13,keyasint"` // and the round after which
	Params   int    `cbor:"14,keyasint"`
	Stats    int    `cbor:"15,keyasint"`
	Limit    Limit  `cbor:"16,keyasint"`
	Init     *File  `cbor:"17,keyasint,omitempty"` // initial model file
	Train    int    `cbor:"18,keyasint"`           // samples
	Valid    int    `cbor:"19,keyasint"`
	Test     int    `cbor:"20,keyasint"`
	Memory   int64  `cbor:"21,keyasint,omitempty"` // memory in bytes that the run was expected to need
	Own      bool   `cbor:"23,keyasint,omitempty"` // the model is a graph that a Go program defines; it is not in the log
	// augmentation of training samples, see data.ParseAugment
	Augment   string `cbor:"24,keyasint,omitempty"`
	OnTrouble string `cbor:"26,keyasint,omitempty"` // wait, stop, back; "": wait if a terminal is attached, else stop

	// options without a key in this record, by name, see package option
	More map[string]string `cbor:"27,keyasint,omitempty"`

	// Set holds the knob edits that a fork applies in its first round, until the first Plan record contains them.
	Set []Setting `cbor:"28,keyasint,omitempty"`
	By  string    `cbor:"29,keyasint,omitempty"` // operator who requested Set

	// digest of the settings of the command that began the run, by which a repeated command continues it
	Command string `cbor:"37,keyasint,omitempty"`

	// name of the program that computes the objective, or of the environment (see [Config.Environment]); ModelSpec has the
	// parameters, and the digests of the program or the version of the environment
	Objective string `cbor:"30,keyasint,omitempty"`

	// name of the program that trains its own model; ModelSpec has its description and digests
	Program string `cbor:"36,keyasint,omitempty"`

	// loss of the model if it is not cross-entropy
	Loss    string   `cbor:"31,keyasint,omitempty"`
	Targets *Targets `cbor:"32,keyasint,omitempty"` // only for a regression
	Metrics []string `cbor:"34,keyasint,omitempty"` // of a program: its metrics in addition to the fitness or the loss
	Text    bool     `cbor:"33,keyasint,omitempty"` // the data are text: losses are also reported in bits per byte
	// of a log whose older records were removed; nil: the log has all records
	Begins *Beginning `cbor:"38,keyasint,omitempty"`
}

// Beginning is where a log begins whose older records were removed. Its first records stand in for those: the
// configuration with this, what the goal of the run and its last good state need, and a checkpoint and a plan that
// restores it. Verify, resume and forks start there.
type Beginning struct {
	Round uint64 `cbor:"0,keyasint"` // of the checkpoint: the log has the commits after it
	First uint64 `cbor:"1,keyasint"` // number of this record, and of removed records
	Head  uint64 `cbor:"2,keyasint"` // records that stand in for the removed ones, with this one
	// the view before record First+Head, as in a keyframe, which has the charts since round 0; nil: it is too large
	View []byte `cbor:"3,keyasint,omitempty"`
}

// WithoutView returns the configuration without the view of its beginning.
func (c Config) WithoutView() *Config {
	if c.Begins != nil {
		b := *c.Begins
		b.View, c.Begins = nil, &b
	}
	return &c
}

// Removed returns the sentence about the removed records of a log; "" if it has all.
func (c *Config) Removed() string {
	if c == nil || c.Begins == nil {
		return ""
	}
	return fmt.Sprintf("the log begins after round %d: older records were removed (--keep-log)", c.Begins.Round)
}

// Limit is the end of a run; zero fields do not limit it. A State record changes the limit of a resumed run.
type Limit struct {
	Rounds  uint64  `cbor:"0,keyasint,omitempty"`
	Epochs  float64 `cbor:"1,keyasint,omitempty"`
	Seconds float64 `cbor:"2,keyasint,omitempty"`
	Target  string  `cbor:"3,keyasint,omitempty"` // e.g. "test_error=2.8": at or below ends the run
	// evaluations in a row without a new lowest validation loss that end the run; 0: no limit
	Patience int `cbor:"4,keyasint,omitempty"`
}

// Measured reports whether a measurement may end the run.
func (l Limit) Measured() bool { return l.Target != "" || l.Patience > 0 }

// Reached reports whether progress has reached the limit in rounds or epochs.
func (l Limit) Reached(p Progress) bool {
	return l.Rounds > 0 && p.Rounds >= l.Rounds || l.Epochs > 0 && p.Epochs >= l.Epochs
}

// Judged reports whether the target is a fitness, which is measured on validation samples, see SeriesJudged.
func (l Limit) Judged() bool { return strings.HasPrefix(l.Target, SeriesFitness+"=") }

// Part returns the completed fraction of the limit in rounds or epochs, from 0 to 1; 0 if it limits neither.
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

// Left returns the seconds until the first limit is reached. trained is the time of training so far in seconds; rounds
// and epochs are rates per second. ok is false if there is no limit with a rate.
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

// MaxMembers is the maximum population size. A plan contains up to three rosters of it and the lost members, and must
// fit into one record of the log and one message (8 MiB).
const MaxMembers = 1 << 18

// MembersLabel is the label of the population knob on screens.
const MembersLabel = "population size"

// Source is the origin of a plan's blocks.
type Source string

const (
	Fresh   Source = "fresh"      // initialised from the seed
	Workers Source = "workers"    // blocks of the surviving workers of the last epoch, at round At
	Saved   Source = "checkpoint" // checkpoint of round At, with exactly its members and algorithm
)

// Plan starts a new epoch at a committed round: a change of the roster, the algorithm or the source of the blocks.
type Plan struct {
	Epoch     uint32            `cbor:"0,keyasint"`
	At        uint64            `cbor:"1,keyasint"` // rounds done
	From      Source            `cbor:"2,keyasint"`
	Old       collective.Roster `cbor:"3,keyasint"` // roster of the last installed epoch; empty when Fresh
	New       collective.Roster `cbor:"4,keyasint"`
	Lost      []engine.Member   `cbor:"5,keyasint,omitempty"` // members of Old without a surviving copy
	OldAlg    string            `cbor:"6,keyasint,omitempty"`
	Algorithm string            `cbor:"7,keyasint"`
	Timeline  []Edit            `cbor:"8,keyasint,omitempty"` // edits in effect, for workers that join
	Base      uint32            `cbor:"9,keyasint,omitempty"` // epoch that was installed when this plan was made
	Cause     Cause             `cbor:"10,keyasint,omitempty"`
	Note      string            `cbor:"11,keyasint,omitempty"` // a sentence for the event list
	// edits that determine the shapes of the blocks of Old, if those come from the workers
	Before []Edit `cbor:"12,keyasint,omitempty"`
	// number up to which the plan applies accepted commands; 0: it applies no new ones
	Obeyed uint64 `cbor:"13,keyasint,omitempty"`
	// members of Old whose worker is gone, and whose rows come from its mirror: see collective.Roster.Mirrors
	Mirrored []engine.Member `cbor:"14,keyasint,omitempty"`
}

// Sources returns the members of Old whose rows survive, each at the worker that provides them.
func (p Plan) Sources() collective.Roster {
	left := p.Old.Without(p.Lost)
	if len(p.Mirrored) == 0 {
		return left
	}
	return left.Moved(p.Mirrored, p.Old.Mirrors())
}

// Edit is a change of one knob, in effect after round At. Expr is a value or a schedule in the units of a log.
type Edit struct {
	At        uint64 `cbor:"0,keyasint"`
	Algorithm string `cbor:"1,keyasint"`
	Knob      string `cbor:"2,keyasint"`
	Expr      string `cbor:"3,keyasint"`
	By        string `cbor:"4,keyasint,omitempty"` // one of SpecAuthors, or the operator who made it
	ID        uint64 `cbor:"5,keyasint,omitempty"` // id of the command that requested it

	// Progress at round At, for schedules in epochs or steps. Set once that round is committed.
	Epochs float64 `cbor:"6,keyasint,omitempty"`
	Steps  uint64  `cbor:"7,keyasint,omitempty"`

	Obeys uint64 `cbor:"8,keyasint,omitempty"` // number of the accepted command
	// reason given with the command; for a choice by the run (optim.Auto), the measurements
	Why string `cbor:"9,keyasint,omitempty"`
	// Expr as the user typed it, for readers; "" if equal. It has no effect.
	Typed string `cbor:"10,keyasint,omitempty"`
}

// SpecAuthors lists the values of Edit.By for edits that no command made. No operator may have such a name.
var SpecAuthors = []string{"preset", "flag", optim.Auto, ByModel, ByDefault}

// ByDefault marks the edit of a knob whose initial value differs from its default, see optim.Knob.Schedule.
const ByDefault = "default"

// ByModel marks the edit that sets the learning rate of the model's specification.
const ByModel = "model"

// FromSpec reports whether no command made the edit: it comes from a preset, a flag or a choice of the run.
func (e Edit) FromSpec() bool { return !e.Commanded() && slices.Contains(SpecAuthors, e.By) }

// Commanded reports whether the edit comes from a command.
func (e Edit) Commanded() bool { return e.Obeys != 0 || e.ID != 0 }

// First returns the first round in which the edit is in effect, counted from 1.
func (e Edit) First() uint64 { return e.At + 1 }

// Whose describes who made the edit, with the reason if there is one.
func (e Edit) Whose() string {
	if e.Why == "" {
		return e.By
	}
	return e.By + ": " + e.Why
}

// Same reports whether two edits are equal, ignoring the fields that are filled in later.
func (e Edit) Same(o Edit) bool {
	e.Epochs, e.Steps, o.Epochs, o.Steps = 0, 0, 0, 0
	return e == o
}

// Commit records that every worker completed round To and that the state has this hash.
type Commit struct {
	Epoch    uint32   `cbor:"0,keyasint"`
	To       uint64   `cbor:"1,keyasint"` // rounds done
	Hash     string   `cbor:"2,keyasint"` // "blake3:..." over the sorted digests of all blocks
	Progress Progress `cbor:"3,keyasint"`
	// payload bytes of the committed rounds, summed over workers
	Sent       map[collective.Op]int64 `cbor:"4,keyasint,omitempty"`
	Predicted  map[collective.Op]int64 `cbor:"5,keyasint,omitempty"`
	Evaluation map[collective.Op]int64 `cbor:"6,keyasint,omitempty"` // bytes of evaluation and probes
	Aborted    int64                   `cbor:"7,keyasint,omitempty"` // payload of rounds that were discarded
	Overhead   int64                   `cbor:"8,keyasint,omitempty"` // bytes on the wire beyond payload
	Rounds     uint64                  `cbor:"9,keyasint"`           // rounds in this commit
	Nanos      int64                   `cbor:"10,keyasint"`          // wall time of the slowest worker
	// part of Nanos in which a worker waited for frames of others; mean over workers
	Waited int64 `cbor:"11,keyasint,omitempty"`
	// workers whose part of the rounds another worker executed again, with equal results
	Audited []Audit `cbor:"12,keyasint,omitempty"`
}

// Audit names a worker and its auditor.
type Audit struct {
	Of int `cbor:"0,keyasint"`
	By int `cbor:"1,keyasint"`
}

// Progress counts the work of the whole population since the start. It is a pure function of roster and knobs.
type Progress struct {
	Rounds, Steps, Samples, Evaluations uint64
	Epochs                              float64
}

// Points are the values of one series after one round, as measured: they may be NaN or infinite.
type Points struct {
	Round  uint64 `cbor:"0,keyasint"` // completed round, from 1
	Series string `cbor:"1,keyasint"`
	// ascending; a series of edges repeats a member per edge; [engine.None] for a value of the whole population
	Members []engine.Member `cbor:"2,keyasint"`
	Values  []float64       `cbor:"3,keyasint"`
}

// Evaluation is the centre's score on the test set.
type Evaluation struct {
	Round     uint64  `cbor:"0,keyasint"`
	TestError float64 `cbor:"1,keyasint"` // percent; undefined unless [Config.Graded]
	TestLoss  float64 `cbor:"2,keyasint"`
	Samples   int64   `cbor:"3,keyasint"`
	Centre    string  `cbor:"4,keyasint"` // "blake3:..." of the centre's parameters
	// of a regression: mean squared error of the standardised targets over samples and outputs; of a multi-label model:
	// share of wrong labels
	Squares float64  `cbor:"5,keyasint,omitempty"`
	Episode *Episode `cbor:"6,keyasint,omitempty"` // of the centre in the environment of the run; nil: there is none
	// Validation is the scores on the validation samples; nil: the run has none.
	Validation *Scores `cbor:"7,keyasint,omitempty"`
}

// Scores are the figures of an [Evaluation] on other samples than the test set.
type Scores struct {
	Error   float64 `cbor:"0,keyasint"`
	Loss    float64 `cbor:"1,keyasint"`
	Samples int64   `cbor:"2,keyasint"`
	Squares float64 `cbor:"3,keyasint,omitempty"`
}

// Bounds of an episode.
const (
	EpisodeWidth  = 4   // numbers of a state
	EpisodeStates = 130 // maximum number of states
)

// Episode is an episode that the centre played on the first test seed, to be shown.
type Episode struct {
	Seed   uint64  `cbor:"0,keyasint"`
	Return float64 `cbor:"1,keyasint"`
	Steps  int     `cbor:"2,keyasint"`
	// States has rows of EpisodeWidth numbers, see [brood/models/environment.State]: the first state, others at even
	// distances, and the last.
	States []float32 `cbor:"3,keyasint"`
}

// Alert reports an event that may need action by the user.
type Alert struct {
	Round  uint64        `cbor:"0,keyasint"`
	Level  Level         `cbor:"1,keyasint"`
	Kind   AlertKind     `cbor:"2,keyasint"`
	Text   string        `cbor:"3,keyasint"`
	Member engine.Member `cbor:"4,keyasint"`
}

// Checkpoint refers to saved blocks of a committed round.
type Checkpoint struct {
	Round     uint64            `cbor:"0,keyasint"`
	Epoch     uint32            `cbor:"1,keyasint"`
	Roster    collective.Roster `cbor:"2,keyasint"`
	Algorithm string            `cbor:"3,keyasint"`
	Hash      string            `cbor:"4,keyasint"` // of the commit
	Files     []File            `cbor:"5,keyasint"`
	Timeline  []Edit            `cbor:"6,keyasint,omitempty"` // all earlier edits in the log that are still valid
	Progress  Progress          `cbor:"7,keyasint"`
	// of Files, by the workers that saved them; nil: none is signed
	Signatures []Signature `cbor:"8,keyasint,omitempty"`
}

// File is a saved shard, relative to the session directory.
type File struct {
	Path   string `cbor:"0,keyasint"`
	Digest string `cbor:"1,keyasint"`
	Bytes  int64  `cbor:"2,keyasint"`
}

// State changes the phase of the run.
type State struct {
	Round  uint64 `cbor:"0,keyasint"`
	Phase  Phase  `cbor:"1,keyasint"`
	Reason string `cbor:"2,keyasint,omitempty"`
	Limit  *Limit `cbor:"3,keyasint,omitempty"`
}

// Resumed is the reason of the state with which each process that resumes a run begins.
const Resumed = "resumed"

// Phase of a run's life.
type Phase string

const (
	Waiting  Phase = "waiting"  // for workers
	Training Phase = "training" // rounds are executed
	Paused   Phase = "paused"   // by a user, or by an alert
	Finished Phase = "finished" // the limit or target was reached
	Stopped  Phase = "stopped"  // by a user or a signal; may be resumed
	Failed   Phase = "failed"   // no worker is left, or the disk is full
)

// Over reports whether a run has ended; it may still be resumed.
func (p Phase) Over() bool { return p == Finished || p == Stopped || p == Failed }
