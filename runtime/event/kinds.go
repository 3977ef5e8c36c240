package event

// Each list below is the whole of its kind: what decides by one compares it with these constants, and with no text. A
// log may have been written by another version of brood, so a reader meets others too: it shows them as they are and
// decides nothing by them.

// Cause says why a plan was made.
type Cause string

const (
	CauseStart    Cause = "start"    // the first plan of a run
	CauseResume   Cause = "resume"   // the first plan of a run that goes on
	CauseFork     Cause = "fork"     // the first plan of a branch
	CauseJoin     Cause = "join"     // a worker came, or takes part again
	CauseLeave    Cause = "leave"    // a worker leaves by itself
	CauseDrain    Cause = "drain"    // an operator moves the members of a worker away
	CauseDeath    Cause = "death"    // a worker is lost
	CauseResize   Cause = "resize"   // another population
	CauseSwap     Cause = "swap"     // another algorithm
	CauseKnob     Cause = "knob"     // a knob that changes the blocks, or that the run chooses
	CauseRollback Cause = "rollback" // back to a checkpoint, or to the start
	CauseRestore  Cause = "restore"  // the rounds since the last commit are void
)

// Causes are all of them.
var Causes = []Cause{CauseStart, CauseResume, CauseFork, CauseJoin, CauseLeave, CauseDrain, CauseDeath,
	CauseResize, CauseSwap, CauseKnob, CauseRollback, CauseRestore}

// Level says how much an alert asks of whoever looks.
type Level string

const (
	LevelInfo    Level = "info"    // something happened, and nothing is to be done
	LevelWarning Level = "warning" // the run goes on, otherwise than was asked
	LevelError   Level = "error"   // the run stands, or something asked for will not be done
)

// Levels are all of them.
var Levels = []Level{LevelInfo, LevelWarning, LevelError}

// AlertKind says what an alert tells of.
type AlertKind string

const (
	AlertNonFinite  AlertKind = "non-finite"  // a block holds a number that is none; the run pauses
	AlertDisagree   AlertKind = "disagree"    // workers report what cannot all be true; the run pauses
	AlertDisk       AlertKind = "disk"        // the disk took no checkpoint or records; as an error, the run pauses
	AlertLostWorker AlertKind = "lost-worker" // a worker is gone; as an error, none is left
	AlertLostLink   AlertKind = "lost-link"   // two workers lost each other, and are tried again
	AlertBytes      AlertKind = "bytes"       // an algorithm does not send what it predicts: its bytes prove nothing
	AlertRejected   AlertKind = "rejected"    // what was accepted cannot be obeyed any more
	AlertRollback   AlertKind = "rollback"    // rounds are done again
	AlertLeave      AlertKind = "leave"       // a worker leaves by itself
	AlertCordon     AlertKind = "cordon"      // an operator did so to a worker; also the next three
	AlertDrain      AlertKind = "drain"
	AlertUncordon   AlertKind = "uncordon"
	AlertKill       AlertKind = "kill"
	AlertLink       AlertKind = "link"       // an operator slowed a link down, or let it go
	AlertLog        AlertKind = "log"        // the end of the log was torn, and cut off
	AlertCheckpoint AlertKind = "checkpoint" // a checkpoint is damaged or its files are lost

	AlertMissing AlertKind = "missing" // an objective has given no result for some candidates
	AlertVaries  AlertKind = "varies"  // an objective gives different results for the same parameters and seed
	AlertMetric  AlertKind = "metric"  // an objective gives a metric that is no finite number

	AlertRestarts AlertKind = "restarts" // the program of an objective ends, and is started again

	// Of what a run is watched for: a warning, and in level info that it is over.
	AlertDiverged AlertKind = "diverged" // the loss of the centre is far above its least
	AlertCollapse AlertKind = "collapse" // the members are nearly one
	AlertFlat     AlertKind = "flat"     // all candidates have the same fitness
	AlertSlow     AlertKind = "slow"     // rounds take far longer than before
	AlertStall    AlertKind = "stall"    // no round is finished
)

// AlertKinds are all of them.
var AlertKinds = []AlertKind{AlertNonFinite, AlertDisagree, AlertDisk, AlertLostWorker, AlertLostLink, AlertBytes,
	AlertRejected, AlertRollback, AlertLeave,
	AlertCordon, AlertDrain, AlertUncordon, AlertKill, AlertLink, AlertLog, AlertCheckpoint, AlertMissing, AlertVaries, AlertMetric, AlertRestarts,
	AlertDiverged, AlertCollapse, AlertFlat, AlertSlow, AlertStall}

// Watched are those that a run is watched for.
var Watched = []AlertKind{AlertDiverged, AlertCollapse, AlertFlat, AlertSlow, AlertStall}

// PauseReason is why a run pauses by itself, until a person resumes it, or ends where nobody looks.
type PauseReason string

const (
	PauseNonFinite PauseReason = "non-finite"
	PauseDisagree  PauseReason = "disagree"
	PauseDisk      PauseReason = "disk"
)

// PauseReasons are all of them.
var PauseReasons = []PauseReason{PauseNonFinite, PauseDisagree, PauseDisk}

// Alert is the kind of the alert that tells of the pause: it has the same name.
func (r PauseReason) Alert() AlertKind { return AlertKind(r) }
