package event

import "brood/optim"

// Series that the runtime measures for every algorithm, on validation samples where no others are named. An algorithm's
// own carry the names it declares.
const (
	SeriesCentre  = "centre.loss" // scalar, nats: mean loss of the centre
	SeriesFitness = "fitness"     // per member: minus its mean loss, unless the algorithm measures its own
	SeriesSpread  = "spread"      // per member: root-mean-square distance to the centre

	// of members, or of the centre where their fitness is of training samples: what a target of fitness is compared
	// with. It is there in runs with such a target
	SeriesJudged = "fitness.validation"

	// scalar, percent: error of the centre on training samples, when the run reaches its limit
	SeriesTrainError = "train.error"

	// scalar, of the centre on the test set: the scores that [Config.Scores] says the run has, and always the loss
	SeriesTestError   = "test.error"   // percent
	SeriesTestBits    = "test.bits"    // bits a byte, of a text
	SeriesTestHamming = "test.hamming" // percent, of several classes: labels that are wrong
	SeriesTestRMSE    = "test.rmse"    // in the target's unit
	SeriesTestR2      = "test.r2"
	SeriesTestFitness = "test.fitness"
	SeriesTestLoss    = "test.loss"
)

// Series are those, whether or not a model and its population have them.
var Series = []optim.Series{
	{Name: SeriesCentre},
	{Name: SeriesFitness, Kind: optim.PerMember},
	{Name: SeriesSpread, Kind: optim.PerMember},
	optim.SeriesGradient,
	{Name: SeriesJudged, Kind: optim.PerMember, Title: "fitness on validation samples"},
	{Name: SeriesTrainError, Title: "training error", Unit: "percent"},
}
