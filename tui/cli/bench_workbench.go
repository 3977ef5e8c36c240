package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"time"

	"brood/runtime/archive"

	"github.com/spf13/cobra"

	"brood/models/engine"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/session"
	"brood/tui"
)

// Sizes of the suite workbench: the terminal in cells, the runs that are overlaid, and the frames that are drawn.
const (
	benchWidth, benchHeight = 200, 50
	benchMarked             = 16 // overlaid runs
	benchMembers            = 64 // of an overlaid run
	benchFrames             = 400
	benchAppend             = 4096 // records in a write
)

// benchWorkbench writes --runs synthetic sessions and opens the workbench on them twice: without a cache, and with the
// cache of the first time.
func benchWorkbench(c *cobra.Command, report func(measurement)) error {
	n, err := c.Flags().GetInt("runs")
	if err != nil {
		return err
	}
	if n < benchMarked || n > 1_000_000 {
		return usage("--runs %d: give %d to 1 000 000", n, benchMarked)
	}
	long, err := c.Flags().GetInt("length")
	if err != nil {
		return err
	}
	if long < 100 || long > 1_000_000 {
		return usage("--length %d: give 100 to 1 000 000", long)
	}
	progress := func(text string) { fmt.Fprintln(c.ErrOrStderr(), "brood: "+text) }
	return withTempDir(c, func(ctx context.Context,
		home string) error {
		return workbenchIn(ctx, home, n, long, progress, report)
	})
}

func workbenchIn(ctx context.Context, home string, n, long int, progress func(string),
	report func(measurement)) error {
	progress(fmt.Sprintf("writing %s to %s, %d of them with %s rounds of %d members; they are removed in the end",
		plural(n, "session"), home, benchMarked, grouped(int64(long)), benchMembers))
	began, bytes, points := time.Now(), int64(0), int64(0)
	last := began
	for i := range n {
		if time.Since(last) > time.Second {
			last = time.Now()
			progress(fmt.Sprintf("wrote %s of them", grouped(int64(i))))
		}
		members, rounds := 4, 40
		if i >= n-benchMarked { // written last: they are at the top
			members, rounds = benchMembers, long
		}
		size, err := writeSynthetic(ctx, filepath.Join(home, "s", fmt.Sprintf("run-%06d", i)), i, members, rounds)
		if err != nil {
			return err
		}
		bytes, points = bytes+size, points+int64(members*rounds)
	}
	report(measurement{Name: fmt.Sprintf("made %d sessions", n), Value: time.Since(began).Seconds(), Unit: "s",
		Note: grouped(points) + " points, logs of " + humanBytes(bytes)})
	for _, cache := range []string{"no cache", "cache"} {
		progress("opening the workbench on them, " + map[string]string{"no cache": "without a cache",
			"cache": "with the cache of the first time"}[cache])
		lib := &sessionLibrary{home: filepath.Join(home, "s"),
			lib: archive.OpenLibrary(filepath.Join(home, "s"), filepath.Join(home, "cache")), hosts: newHosts(nil, nil)}
		t, err := tui.Measure(ctx, lib, benchWidth, benchHeight, benchMarked, benchFrames)
		if err != nil {
			return err
		}
		ms := func(what string, d time.Duration, goal float64) {
			report(measurement{Name: what + ", " + cache, Value: float64(d.Microseconds()) / 1000, Unit: "ms", Goal: goal})
		}
		ms("first paint", t.First, 200)
		ms("all runs in view with figures", t.Filled, 0)
		ms("all runs read", t.All, 0)
		if cache == "cache" {
			slices.Sort(t.Frames)
			ms(fmt.Sprintf("frame that lays %d runs anew", t.Lines), t.Laid, 0)
			ms(fmt.Sprintf("frame %dx%d, %d runs of %d, p50", benchWidth, benchHeight, t.Lines, benchMembers),
				t.Frames[len(t.Frames)/2], 0)
			ms(fmt.Sprintf("frame %dx%d, %d runs of %d, p95", benchWidth, benchHeight, t.Lines, benchMembers),
				t.Frames[len(t.Frames)*95/100], 4)
		}
	}
	return nil
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
		if len(records) > benchAppend {
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
