package event

// Each list below is complete. Code compares values with these constants only, never with other text. A log of another
// version of brood may contain other values: a reader shows them unchanged and takes no decision by them.

// Cause is the reason for a plan.
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

// Level is the severity of an alert.
type Level string

const (
	LevelInfo    Level = "info"    // no action is needed
	LevelWarning Level = "warning" // the run continues, but not as requested
	LevelError   Level = "error"   // the run has paused, or a request will not be executed
)

// Levels are all of them.
var Levels = []Level{LevelInfo, LevelWarning, LevelError}

// AlertKind is the kind of event that an alert reports.
type AlertKind string

const (
	AlertNonFinite  AlertKind = "non-finite"  // a block contains NaN or infinity; the run pauses
	AlertDisagree   AlertKind = "disagree"    // workers report contradictory results; the run pauses
	AlertDisk       AlertKind = "disk"        // a checkpoint or records could not be written; as an error, the run pauses
	AlertLostWorker AlertKind = "lost-worker" // a worker was lost; as an error, none is left
	AlertLostLink   AlertKind = "lost-link"   // the link between two workers failed; it is retried
	AlertBytes      AlertKind = "bytes"       // an algorithm sends other than the predicted bytes
	AlertRejected   AlertKind = "rejected"    // an accepted command can no longer be applied
	AlertRollback   AlertKind = "rollback"    // rounds are repeated
	AlertLeave      AlertKind = "leave"       // a worker leaves by itself
	AlertCordon     AlertKind = "cordon"      // an operator cordoned a worker; the next three are operator actions too
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

	// Alert rules: a warning when the condition begins, and an info when it is over.
	AlertDiverged AlertKind = "diverged" // the loss of the centre is far above its minimum
	AlertCollapse AlertKind = "collapse" // the members are nearly identical
	AlertFlat     AlertKind = "flat"     // all candidates have the same fitness
	AlertSlow     AlertKind = "slow"     // rounds take far longer than before
	AlertStall    AlertKind = "stall"    // no round is finished
)

// AlertKinds are all of them.
var AlertKinds = []AlertKind{AlertNonFinite, AlertDisagree, AlertDisk, AlertLostWorker, AlertLostLink, AlertBytes,
	AlertRejected, AlertRollback, AlertLeave,
	AlertCordon, AlertDrain, AlertUncordon, AlertKill, AlertLink, AlertLog, AlertCheckpoint, AlertMissing, AlertVaries, AlertMetric, AlertRestarts,
	AlertDiverged, AlertCollapse, AlertFlat, AlertSlow, AlertStall}

// Watched are the kinds of the alert rules.
var Watched = []AlertKind{AlertDiverged, AlertCollapse, AlertFlat, AlertSlow, AlertStall}

// PauseReason is why a run pauses by itself until a user resumes it; an unattended run may end instead.
type PauseReason string

const (
	PauseNonFinite PauseReason = "non-finite"
	PauseDisagree  PauseReason = "disagree"
	PauseDisk      PauseReason = "disk"
)

// PauseReasons are all of them.
var PauseReasons = []PauseReason{PauseNonFinite, PauseDisagree, PauseDisk}

// Alert returns the kind of the alert that reports the pause. It has the same name.
func (r PauseReason) Alert() AlertKind { return AlertKind(r) }
