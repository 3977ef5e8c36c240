package archive

import (
	"brood/optim/collective"
	"brood/runtime/event"
)

// Result is the result of a run; as JSON it is the last line of --json.
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
	TrainLoss        *float64 `json:"train_loss"`             // nil of an objective, which has no loss
	MeanFitness      *float64 `json:"mean_fitness,omitempty"` // in its place: of the last candidates
	TestError        *float64 `json:"test_error"`
	// in its place: of a regression, of a run that maximises an objective, and where nothing is predicted
	TestRMSE    *float64       `json:"test_rmse,omitempty"`
	TestBits    *float64       `json:"test_bits,omitempty"`    // beside it, of a text
	TestHamming *float64       `json:"test_hamming,omitempty"` // likewise, of several classes
	TestR2      *float64       `json:"test_r2,omitempty"`
	TestFitness *float64       `json:"test_fitness,omitempty"`
	TestLoss    *float64       `json:"test_loss,omitempty"`
	TestRound   *uint64        `json:"test_round"`            // that it is of, which may lie before the last
	TestReport  map[string]any `json:"test_report,omitempty"` // what was asked when it was over
	// of the programs of an objective: the last alert on each worker
	Restarts        []string                `json:"restarts,omitempty"`
	BytesSent       map[collective.Op]int64 `json:"bytes_sent"`
	BytesPredicted  map[collective.Op]int64 `json:"bytes_predicted"`
	EvaluationBytes map[collective.Op]int64 `json:"evaluation_bytes"`
	OverheadBytes   int64                   `json:"overhead_bytes"`
	Waited          float64                 `json:"waited,omitempty"` // share of the time, for frames
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
