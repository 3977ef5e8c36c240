package coordinator

import (
	"time"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/message"
)

// Each part lists its invariants. They hold after every step until the exit; the tests check them after each step
// (holds).

// life is the position of the run between its start and its exit.
//
//   - over implies an ending, and then every event is ignored;
//   - training implies that since is set.
type life struct {
	phase   event.Phase
	now     time.Time
	trained time.Duration // time in the phase training before since, for a time limit
	since   time.Time     // when the phase training was entered last; zero before
	ending  *Exit         // carried out once everything granted is committed and saved; nil while the run continues
	over    bool
}

// membership is the set of workers that are present, and what was lost with workers that are gone.
//
//   - alive ascends without duplicates;
//   - excluded, keys, machines and breaks contain only workers that are present; in a pair the lower number is first;
//   - lost members are in the roster.
type membership struct {
	alive     []int
	excluded  map[int]exclusion      // workers that get no members
	lost      map[engine.Member]bool // members whose worker is gone, until the next plan
	breaks    map[[2]int]breaks      // broken connections between pairs of workers, the lower number first
	keys      map[int]string         // keys of workers that joined with one
	machines  map[int]string         // machines of workers that named one
	evictions map[string]breaks      // evictions for broken links, by key
	evictedAt time.Time              // time of the last eviction for broken links
	retry     time.Time              // after a broken link, the next epoch waits until this time
}

// epochs is the membership epoch in effect, and the change or plan that will replace it.
//
//   - roster and hosting describe the same placement;
//   - base <= epoch; a plan has the newest epoch, which is not in effect yet;
//   - while a plan is out, at least one worker that is present is not ready, and nothing is granted.
type epochs struct {
	epoch     uint32 // newest epoch sent
	base      uint32 // newest epoch for which all workers were ready
	alg       *optim.Algorithm
	roster    collective.Roster     // of epoch base
	hosting   collective.Hosting    // the same, indexed by worker
	from      []int                 // per worker of hosting, its offset into outstanding.sums; last, the total
	names     [][]string            // per worker of hosting, the rows that it reports in addition to the shared rows
	rows      []row                 // all rows in the order of the hash; nil until the first root of the epoch
	before    []event.Edit          // edits that determined the blocks in effect
	blocks    map[string]bool       // blocks of base; true: shared
	shared    []string              // rows of shared blocks, by name
	series    map[string]optim.Kind // declared series, the only ones accepted in points
	snapshots bool                  // workers take snapshots of the rounds at which grants begin
	change    *change               // structural change that waits for the outstanding grants
	plan      *message.Plan         // sent, but not all workers are ready yet
	pending   []int                 // workers that received the plan and are not ready yet
	rates     optim.Rates           // minimum over the workers that are ready
	voided    bool                  // outstanding grants were voided: workers may still execute them until the next epoch

	bytesWarned map[string]bool // algorithms whose bytes differ from their prediction, after the warning
}

// knobs is what people, presets and the run itself requested.
//
//   - edits are in the log with their rounds; loose is a subset of them;
//   - staged edits are in no record yet; they get their round with the next grant or plan.
type knobs struct {
	edits   []event.Edit // accepted with a known first round
	loose   []event.Edit // in the log, but not in a grant or plan yet
	staged  []event.Edit // waiting for the next grant
	asked   uint64       // number of the newest accepted command
	refused []string     // why commands of the resumed log can no longer be applied
}

// rounds is what was granted and reported.
//
//   - committed <= granted;
//   - at most Ahead grants are outstanding. They belong to the epoch in effect and cover committed
//     to granted without gaps.
type rounds struct {
	committed, granted uint64
	progress           event.Progress
	hash               string
	batch              uint64                  // rounds of the next grant
	maxRounds          uint64                  // maximum rounds of a grant whose report fits into a message
	held               bool                    // the outstanding grant may end before its last round
	done               map[uint64]*outstanding // outstanding grants by From
	spare              *outstanding            // buffers for the next grant, reused; may be nil
}

// saves is what the run can return to.
//
//   - neither the checkpoint nor the save in progress is beyond the committed rounds;
//   - the run returns automatically at most backTries times.
type saves struct {
	checkpoint *event.Checkpoint
	lastGood   LastGood
	tries      int // number of automatic returns
	saving     *saving
	savedAt    time.Time
	saveCost   time.Duration // moving average of the duration of a checkpoint on the slowest worker; 0: unknown
	faults     FaultRate
	wantSave   bool // a person requested a checkpoint, or one was cut off
}

// change is the content of the next plan.
type change struct {
	alg     string
	members []engine.Member
	edits   []event.Edit
	cause   event.Cause
	note    string
	back    bool // return to the checkpoint
	undo    bool // and drop the edits that a person made since
	reset   bool // alg takes over: it starts with its default knobs and edits
}

// saving is a checkpoint in progress, with the files reported so far by worker.
type saving struct {
	at       uint64
	hash     string
	progress event.Progress
	files    map[int][]event.File

	signatures map[int]event.Signature // zero of a worker of the coordinator's process
	longest    time.Duration           // duration of the save on the slowest worker so far
}
