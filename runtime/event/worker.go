package event

// WorkerState is the state of a worker.
type WorkerState string

const (
	Hosting  WorkerState = "hosting"  // it hosts members
	Idle     WorkerState = "idle"     // there are more workers than members
	Cordoned WorkerState = "cordoned" // it gets no members from the next plan on; it may host some until then
	Leaving  WorkerState = "leaving"  // its members are moving on, and then it ends
	Joining  WorkerState = "joining"  // it reads its data
)
