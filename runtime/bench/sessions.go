package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"time"

	"brood/models/engine"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/session"
)

// Members of synthetic sessions: of the long ones, which a workbench overlays, and of the others.
const (
	LongMembers  = 64
	shortMembers = 4
)

const (
	shortRounds     = 40
	recordsPerWrite = 4096
)

// Synthetic is the size of the sessions that WriteSessions wrote.
type Synthetic struct {
	Bytes  int64 // size of the logs
	Points int64
}

// WriteSessions writes n sessions of synthetic runs to new directories below dir. The last long of them, which a list
// by time shows first, have LongMembers members and the given number of rounds. It calls progress about once a second
// with the number of sessions written.
func WriteSessions(ctx context.Context, dir string, n, long, rounds int, progress func(written int)) (out Synthetic,
	err error) {
	last := time.Now()
	for i := range n {
		if time.Since(last) > time.Second {
			last = time.Now()
			progress(i)
		}
		ms, rs := shortMembers, shortRounds
		if i >= n-long {
			ms, rs = LongMembers, rounds
		}
		size, err := writeSynthetic(ctx, filepath.Join(dir, fmt.Sprintf("run-%06d", i)), i, ms, rs)
		if err != nil {
			return out, err
		}
		out.Bytes, out.Points = out.Bytes+size, out.Points+int64(ms*rs)
	}
	return out, nil
}

// writeSynthetic writes the session of a synthetic run to dir and returns the size of its log in bytes. seed varies the
// losses.
func writeSynthetic(ctx context.Context, dir string, seed, members, rounds int) (int64, error) {
	s, err := session.Create(dir)
	if err != nil {
		return 0, err
	}
	roster, at := collective.Place(collective.IDs(members), []int{0}), time.Now().Add(-time.Hour).UnixNano()
	wrote := int64(0)
	write := func(records []event.Record) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		for i := range records {
			records[i].At = at + (wrote+int64(i))*1e6
		}
		wrote += int64(len(records))
		return s.Append(records...)
	}
	records := []event.Record{
		{Config: &event.Config{
			Version: 3,
			Preset:  "bench",
			Model:   "mlp",
			Data:    "glyphs",
			Seed:    uint64(seed),
			Limit:   event.Limit{Rounds: uint64(rounds)},
		}},
		{Plan: &event.Plan{Epoch: 1, From: event.Fresh, New: roster, Algorithm: "parle", Cause: event.CauseStart}},
		{State: &event.State{Phase: event.Training}},
	}
	for r := 1; r <= rounds; r++ {
		loss := make([]float64, members)
		for i := range loss {
			loss[i] = 2*math.Exp(-float64(r)/float64(rounds)*4) + 0.1*float64((seed+i*7+r*13)%11)/11
		}
		round := uint64(r)
		records = append(records, event.Record{Points: &event.Points{
			Round:   round,
			Series:  "loss",
			Members: roster.Members,
			Values:  loss,
		}})
		if r%4 == 0 {
			records = append(records,
				event.Record{Points: &event.Points{
					Round:   round,
					Series:  event.SeriesCentre,
					Members: []engine.Member{engine.None},
					Values:  loss[:1],
				}},
				event.Record{Commit: &event.Commit{Epoch: 1, To: round, Rounds: 4, Nanos: 4e8, Hash: fmt.Sprintf("blake3:%064x", r),
					Progress: event.Progress{Rounds: round, Steps: round, Samples: 128 * round, Epochs: float64(r) / 100},
					Sent:     map[collective.Op]int64{"couple": 35344}, Predicted: map[collective.Op]int64{"couple": 35344}}})
		}
		if r%20 == 0 {
			records = append(records, event.Record{Evaluation: &event.Evaluation{
				Round:     round,
				TestError: 100 * loss[0] / 3,
				TestLoss:  loss[0],
				Samples:   1000,
			}})
		}
		if len(records) > recordsPerWrite {
			if err := write(records); err != nil {
				return 0, errors.Join(err, s.Close())
			}
			records = nil
		}
	}
	records = append(records, event.Record{State: &event.State{Phase: event.Finished, Round: uint64(rounds)}})
	if err := errors.Join(write(records), s.Close()); err != nil {
		return 0, err
	}
	size, _, _ := session.LogSize(dir)
	return size, nil
}
