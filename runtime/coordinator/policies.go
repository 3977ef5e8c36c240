package coordinator

import (
	"fmt"
	"slices"
)

// LossPolicy determines what happens to members whose last copy was lost with its worker.
type LossPolicy string

const (
	OnLossReseed   LossPolicy = "reseed"   // they are reinitialized from the centre
	OnLossRollback LossPolicy = "rollback" // all members return to the last checkpoint
	OnLossShrink   LossPolicy = "shrink"   // the population continues without them
	// they continue from the copies that another worker holds; if that one is lost too, as with rollback
	OnLossMirror LossPolicy = "mirror"
)

// LossPolicies lists all values.
var LossPolicies = []LossPolicy{OnLossReseed, OnLossRollback, OnLossShrink, OnLossMirror}

// TroublePolicy determines what a run does when it needs a person's attention: a block is not finite, the disk is full,
// or workers disagree. Waiting for workers does not count as trouble.
type TroublePolicy string

const (
	OnTroubleWait TroublePolicy = "wait" // pause until a person resumes the run
	OnTroubleStop TroublePolicy = "stop" // save what can be saved and end as failed
	// if a block is not finite, return to the newest good checkpoint; otherwise the same as stop
	OnTroubleBack TroublePolicy = "back"
)

// TroublePolicies lists all values.
var TroublePolicies = []TroublePolicy{OnTroubleWait, OnTroubleStop, OnTroubleBack}

// validatePolicies rejects unknown policies, which would have no effect.
func validatePolicies(c Config) error {
	if !slices.Contains(LossPolicies, c.OnLoss) {
		return fmt.Errorf("there is no policy on-loss %q: the session is of another version of brood", c.OnLoss)
	}
	if !slices.Contains(TroublePolicies, c.OnTrouble) {
		return fmt.Errorf("there is no policy on-trouble %q: the session is of another version of brood", c.OnTrouble)
	}
	return nil
}
