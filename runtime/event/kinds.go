package event

// Each list below is complete. Code compares values with these constants only, never with other text. A log of another
// version of brood may contain other values: a reader shows them unchanged and does not interpret them.

// Cause is the reason for a plan.
type Cause string

const (
	CauseStart    Cause = "start"    // the first plan of a run
	CauseResume   Cause = "resume"   // the first plan of a resumed run
	CauseFork     Cause = "fork"     // the first plan of a fork
	CauseJoin     Cause = "join"     // a worker joined, or hosts members again
	CauseLeave    Cause = "leave"    // a worker leaves on its own initiative
	CauseDrain    Cause = "drain"    // an operator moves the members of a worker away
	CauseDeath    Cause = "death"    // a worker is lost
	CauseResize   Cause = "resize"   // another population
	CauseSwap     Cause = "swap"     // another algorithm
	CauseKnob     Cause = "knob"     // a knob that changes the blocks, or whose value the run chooses
	CauseRollback Cause = "rollback" // back to a checkpoint, or to the start
	CauseRestore  Cause = "restore"  // the rounds since the last commit are discarded
)

// Causes lists all causes.
var Causes = []Cause{CauseStart, CauseResume, CauseFork, CauseJoin, CauseLeave, CauseDrain, CauseDeath,
	CauseResize, CauseSwap, CauseKnob, CauseRollback, CauseRestore}

// Level is the severity of an alert.
type Level string

const (
	LevelInfo    Level = "info"    // no action is needed
	LevelWarning Level = "warning" // the run continues, but not as requested
	LevelError   Level = "error"   // the run has paused, or a request will not be executed
)

// Levels lists all levels.
var Levels = []Level{LevelInfo, LevelWarning, LevelError}

// AlertKind is the kind of event that an alert reports.
type AlertKind string

const (
	AlertNonFinite  AlertKind = "non-finite"  // a block contains NaN or infinity; the run pauses
	AlertDisagree   AlertKind = "disagree"    // workers report contradictory results; the run pauses
	AlertDisk       AlertKind = "disk"        // a checkpoint or records could not be written; as an error, the run pauses
	AlertLostWorker AlertKind = "lost-worker" // a worker was lost; as an error, none is left
	AlertLostLink   AlertKind = "lost-link"   // the link between two workers failed; it is retried
	AlertBytes      AlertKind = "bytes"       // an algorithm sends another number of bytes than predicted
	AlertRejected   AlertKind = "rejected"    // an accepted command can no longer be applied
	AlertRollback   AlertKind = "rollback"    // rounds are repeated
	AlertRecompute  AlertKind = "recompute"   // the coordinator recomputes the state, since workers do not hold it
	AlertLeave      AlertKind = "leave"       // a worker leaves on its own initiative
	AlertCordon     AlertKind = "cordon"      // an operator cordoned a worker; the next three are operator actions too
	AlertDrain      AlertKind = "drain"
	AlertUncordon   AlertKind = "uncordon"
	AlertKill       AlertKind = "kill"
	AlertLink       AlertKind = "link"       // an operator slowed down a link, or restored it
	AlertLog        AlertKind = "log"        // an incomplete frame at the log's end, or older records, were removed
	AlertCheckpoint AlertKind = "checkpoint" // a checkpoint is damaged or its files are lost

	AlertMissing AlertKind = "missing" // an objective returned no result for some candidates
	AlertVaries  AlertKind = "varies"  // an objective returned different results for the same parameters and seed
	AlertMetric  AlertKind = "metric"  // a metric of an objective is NaN or infinite

	AlertRestarts AlertKind = "restarts" // the program of an objective exited and was restarted

	// Alert rules: a warning when the condition begins, and an info when it is over.
	AlertDiverged AlertKind = "diverged" // the loss of the centre is far above its minimum
	AlertCollapse AlertKind = "collapse" // the members are nearly identical
	AlertApart    AlertKind = "apart"    // replicas move apart, and their centre is worse than they are
	AlertFlat     AlertKind = "flat"     // all candidates have the same fitness
	AlertSlow     AlertKind = "slow"     // rounds take far longer than before
	AlertStall    AlertKind = "stall"    // no round completes
)

// AlertKinds lists all kinds of alerts.
var AlertKinds = []AlertKind{AlertNonFinite, AlertDisagree, AlertDisk, AlertLostWorker, AlertLostLink, AlertBytes,
	AlertRejected, AlertRollback, AlertRecompute, AlertLeave, AlertCordon, AlertDrain, AlertUncordon, AlertKill,
	AlertLink, AlertLog, AlertCheckpoint, AlertMissing, AlertVaries, AlertMetric, AlertRestarts,
	AlertDiverged, AlertCollapse, AlertApart, AlertFlat, AlertSlow, AlertStall}

// Watched lists the kinds of the alert rules.
var Watched = []AlertKind{AlertDiverged, AlertCollapse, AlertApart, AlertFlat, AlertSlow, AlertStall}

// PauseReason is the reason why a run pauses automatically until a user resumes it. An unattended run may end instead.
type PauseReason string

const (
	PauseNonFinite PauseReason = "non-finite"
	PauseDisagree  PauseReason = "disagree"
	PauseDisk      PauseReason = "disk"
)

// PauseReasons lists all reasons.
var PauseReasons = []PauseReason{PauseNonFinite, PauseDisagree, PauseDisk}

// Alert returns the kind of the alert that reports the pause. It has the same name.
func (r PauseReason) Alert() AlertKind { return AlertKind(r) }
