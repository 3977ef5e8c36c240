package worker

import (
	"brood/models/engine"
	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/message"
)

const (
	progRounds = iota
	progSteps
	progSamples
	progEvaluations
	progBase // epochs completed before this segment, in units of message.EpochUnit
	progDone // samples drawn in this segment
	progOf   // samples in one epoch of this segment; 0 before the first
	progCols
)

// counters returns the progress counters, indexed by the constants above.
func (s *epochState) counters() []uint64 { return s.env.Records[message.ProgressBlock].U }

// advance adds a round to the counters. A change of the samples in an epoch starts a new segment.
func (s *epochState) advance(r optim.Report) {
	c := s.counters()
	c[progRounds]++
	c[progSteps] += uint64(r.Steps)
	c[progSamples] += uint64(r.Samples)
	c[progEvaluations] += uint64(r.Evaluations)
	if r.Pass.Of <= 0 {
		return
	}
	if of := uint64(r.Pass.Of); of != c[progOf] {
		if c[progOf] > 0 {
			whole, rest := c[progDone]/c[progOf], c[progDone]%c[progOf]
			c[progBase] += whole<<32 + rest<<32/c[progOf]
		}
		c[progDone], c[progOf] = 0, of
	}
	c[progDone] += uint64(r.Pass.Done)
}

// progress returns the counters as event.Progress.
func (s *epochState) progress() event.Progress { return readProgress(s.counters()) }

func readProgress(c []uint64) event.Progress {
	p := event.Progress{
		Rounds:      c[progRounds],
		Steps:       c[progSteps],
		Samples:     c[progSamples],
		Evaluations: c[progEvaluations],
	}
	p.Epochs = float64(float64(c[progBase]) * message.EpochUnit)
	if c[progOf] > 0 {
		p.Epochs += float64(c[progDone]) / float64(c[progOf])
	}
	return p
}

func newProgress() engine.Host { return engine.NewHost(1, progCols, engine.U64) }
