package event

// WorkerState is the state of a worker.
type WorkerState string

const (
	Hosting  WorkerState = "hosting"  // it hosts members
	Idle     WorkerState = "idle"     // there are more workers than members
	Cordoned WorkerState = "cordoned" // it gets no members from the next plan on; it may host some until then
	Leaving  WorkerState = "leaving"  // its members move to other workers, then it exits
	Joining  WorkerState = "joining"  // it loads its data
)
