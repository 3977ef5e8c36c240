package coordinator

import (
	"fmt"
	"slices"
)

// LossPolicy is what becomes of members whose last copy is lost with their worker.
type LossPolicy string

const (
	OnLossReseed   LossPolicy = "reseed"   // they start again from the centre
	OnLossRollback LossPolicy = "rollback" // everybody goes back to the checkpoint
	OnLossShrink   LossPolicy = "shrink"   // the population goes on without them
)

// LossPolicies are all of them.
var LossPolicies = []LossPolicy{OnLossReseed, OnLossRollback, OnLossShrink}

// TroublePolicy is what a run does that a person should look at, since a block is not finite, the disk is full, or
// workers disagree. To wait for workers is no such trouble.
type TroublePolicy string

const (
	OnTroubleWait TroublePolicy = "wait" // it pauses until a person resumes it
	OnTroubleStop TroublePolicy = "stop" // it saves what it can and ends as failed
	// a block that is not finite: everybody goes back to the newest sane checkpoint; else as stop
	OnTroubleBack TroublePolicy = "back"
)

// TroublePolicies are all of them.
var TroublePolicies = []TroublePolicy{OnTroubleWait, OnTroubleStop, OnTroubleBack}

// known refuses policies that are in no list, of which nothing would come.
func known(c Config) error {
	if !slices.Contains(LossPolicies, c.OnLoss) {
		return fmt.Errorf("there is no policy on-loss %q: the session is of another version of brood", c.OnLoss)
	}
	if !slices.Contains(TroublePolicies, c.OnTrouble) {
		return fmt.Errorf("there is no policy on-trouble %q: the session is of another version of brood", c.OnTrouble)
	}
	return nil
}
