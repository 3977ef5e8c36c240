package archive

import (
	"brood/optim/collective"
	"brood/runtime/event"
)

// Result is the result of a run. Its JSON is the last line of --json.
type Result struct {
	Event            string   `json:"event"`
	Algorithm        string   `json:"algorithm"`
	Rounds           uint64   `json:"rounds"`
	Steps            uint64   `json:"steps"`
	Samples          uint64   `json:"samples"`
	Epochs           float64  `json:"epochs"`
	Seconds          float64  `json:"seconds"`
	SamplesPerSecond float64  `json:"samples_per_second"`
	Evaluations      uint64   `json:"evaluations"`
	TrainLoss        *float64 `json:"train_loss"`             // nil for an objective, which has no loss
	MeanFitness      *float64 `json:"mean_fitness,omitempty"` // then: of the last candidates
	TestError        *float64 `json:"test_error"`
	// Scores instead of TestError: RMSE and R2 for a regression, the fitness for a run that maximises an objective, the
	// loss if nothing is predicted. Beside TestError: bits for a text, Hamming for several classes.
	TestRMSE    *float64       `json:"test_rmse,omitempty"`
	TestBits    *float64       `json:"test_bits,omitempty"`
	TestHamming *float64       `json:"test_hamming,omitempty"`
	TestR2      *float64       `json:"test_r2,omitempty"`
	TestFitness *float64       `json:"test_fitness,omitempty"`
	TestLoss    *float64       `json:"test_loss,omitempty"`
	TestRound   *uint64        `json:"test_round"`            // of the scores; may be before the last round
	TestReport  map[string]any `json:"test_report,omitempty"` // on the test set, if requested at the end
	// on the validation samples, at the same round; absent if the run has none
	HeldError   *float64 `json:"validation_error,omitempty"`
	HeldRMSE    *float64 `json:"validation_rmse,omitempty"`
	HeldBits    *float64 `json:"validation_bits,omitempty"`
	HeldHamming *float64 `json:"validation_hamming,omitempty"`
	HeldLoss    *float64 `json:"validation_loss,omitempty"`
	// Restarts holds the last alert of each worker on restarts of the programs of an objective.
	Restarts        []string                `json:"restarts,omitempty"`
	BytesSent       map[collective.Op]int64 `json:"bytes_sent"`
	BytesPredicted  map[collective.Op]int64 `json:"bytes_predicted"`
	EvaluationBytes map[collective.Op]int64 `json:"evaluation_bytes"`
	OverheadBytes   int64                   `json:"overhead_bytes"`
	Waited          float64                 `json:"waited,omitempty"` // share of the time, for frames
	Audits          int                     `json:"audits,omitempty"` // parts of rounds that a second worker executed
	ParamsHash      string                  `json:"params_hash"`
	CentreHash      string                  `json:"centre_hash"`
	Kernels         string                  `json:"kernels"`
	Members         int                     `json:"members"`
	Phase           event.Phase             `json:"phase"`
	Reason          string                  `json:"reason"`
	MemoryPredicted int64                   `json:"memory_predicted"`
	MemoryMeasured  int64                   `json:"memory_measured"`
	Session         string                  `json:"session"`
}
