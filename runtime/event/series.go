package event

import "brood/optim"

// Series that the runtime measures for every algorithm, on validation samples unless stated otherwise. The series of an
// algorithm have the names that it declares.
const (
	SeriesCentre  = "centre.loss" // scalar, nats: mean loss of the centre
	SeriesFitness = "fitness"     // per member: minus its mean loss, unless the algorithm measures its own
	SeriesSpread  = "spread"      // per member: root-mean-square distance to the centre

	// fitness that is compared with a fitness target: per member, or of the centre if the fitness of members uses
	// training samples; only in runs with such a target
	SeriesJudged = "fitness.validation"

	// scalar, percent: error of the centre on training samples, when the run reaches its limit
	SeriesTrainError = "train.error"

	// scalar, of the centre on the test set: the scores in [Config.Scores], and always the loss
	SeriesTestError   = "test.error"   // percent
	SeriesTestBits    = "test.bits"    // bits per byte, for text
	SeriesTestHamming = "test.hamming" // percent of wrong labels, for multi-label models
	SeriesTestRMSE    = "test.rmse"    // in the target's unit
	SeriesTestR2      = "test.r2"
	SeriesTestFitness = "test.fitness"
	SeriesTestLoss    = "test.loss"
)

// Series lists the series of the runtime, except those of the test set. A run may lack some of them.
var Series = []optim.Series{
	{Name: SeriesCentre},
	{Name: SeriesFitness, Kind: optim.PerMember},
	{Name: SeriesSpread, Kind: optim.PerMember},
	optim.SeriesGradient,
	{Name: SeriesJudged, Kind: optim.PerMember, Title: "fitness on validation samples"},
	{Name: SeriesTrainError, Title: "training error", Unit: "percent"},
}
