package coordinator

import (
	"time"

	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/message"
)

// What each part promises holds after every step up to the exit; the tests ask for it after each of theirs (holds).

// life is where the run stands between its start and its exit.
//
//   - over only with an ending, and then every event is ignored;
//   - training began before it is timed.
type life struct {
	phase  event.Phase
	now    time.Time
	began  time.Time // of training, for a time limit
	ending *Exit     // once everything granted is committed and saved
	over   bool
}

// crew is who is there, and what went with those who are not.
//
//   - alive ascends and names nobody twice;
//   - only those who are there rest, have a key, or connections that broke; of a pair the lower number comes first;
//   - lost members are of the roster.
type crew struct {
	alive []int
	rests map[int]rest // those of alive that get no members
	lost  map[optim.Member]bool
	cuts  map[[2]int]cuts // connections between workers that broke, the lower number first
	keys  map[int]string  // of those of alive that came with one
	aways map[string]cuts // how often who is behind a key was put out because of those
	bad   time.Time       // when that last happened to anybody that had lost others
	retry time.Time       // the change of membership epoch because of one waits until then
}

// epochs is what is in force, and what is to come instead.
//
//   - roster and hosting say the same;
//   - base <= epoch; a plan is of the newest epoch, which is not in force yet;
//   - while a plan is out, somebody who is there is not ready for it, and nothing is granted.
type epochs struct {
	epoch   uint32 // newest given out
	base    uint32 // newest that was ready everywhere
	alg     *optim.Algorithm
	roster  optim.Roster          // of base
	hosting optim.Hosting         // the same by workers
	from    []int                 // of each, where the digests of its names begin; last, their number
	names   [][]string            // rows beside the shared ones that each of these workers reports
	rows    []row                 // of the state, by name, once it was hashed
	before  []event.Edit          // those that shaped the blocks in force
	blocks  map[string]bool       // of base, and whether they are shared
	shared  []string              // rows of blocks that are, by name
	series  map[string]optim.Kind // that its points may be of
	keep    bool                  // workers keep snapshots of the rounds that grants begin at
	change  *change               // structural, waiting for the outstanding grants
	plan    *message.Plan         // sent, not yet ready everywhere
	pending []int                 // workers that the plan was sent to and that are not ready
	rates   optim.Rates           // of the slowest of those that are
	voided  bool                  // outstanding grants were given up: workers may still be at them until the next epoch

	misjudged map[string]bool // algorithms whose bytes are not those that they predict, which was said
}

// knobs is what people, presets and the run itself asked for.
//
//   - edits are in the log with their rounds; loose ones are among them;
//   - staged ones are in no record yet, and get their round with the next grant or plan.
type knobs struct {
	edits   []event.Edit // accepted with a known first round
	loose   []event.Edit // in the log, but in no grant or plan so far
	staged  []event.Edit // waiting for the grant they can ride in
	asked   uint64       // number of the newest accepted command
	refused []string     // why commands of the log that is resumed can be obeyed no more
}

// rounds is what was granted and what came of it.
//
//   - committed <= granted;
//   - at most Ahead grants are out, of the epoch in force, one behind the other from committed to granted.
type rounds struct {
	committed, granted uint64
	progress           event.Progress
	hash               string
	batch              uint64                  // rounds of the next grant
	most               uint64                  // rounds of a grant whose report fits into a message
	held               bool                    // the outstanding grant may end before its last round
	done               map[uint64]*outstanding // by the round before their first
	spare              *outstanding            // room for another grant, in which none has come; may be nil
}

// saves is what the run can go back to.
//
//   - neither the checkpoint nor what is being saved is of a round beyond the committed ones;
//   - a run goes back by itself backTries times at most.
type saves struct {
	checkpoint *event.Checkpoint
	sane       Sane
	tries      int // how often the run went back by itself
	saving     *saving
	savedAt    time.Time
	saveCost   time.Duration // of the last checkpoint, on the slowest worker
	wantSave   bool          // asked for by a person
}

// change is what the next plan does.
type change struct {
	alg     string
	members []optim.Member
	edits   []event.Edit
	cause   event.Cause
	note    string
	back    bool // to the checkpoint
	undo    bool // and without what a person turned since
	reset   bool // alg takes over: it starts from its defaults and edits
}

type saving struct {
	at       uint64
	hash     string
	progress event.Progress
	files    map[int][]event.File
}
