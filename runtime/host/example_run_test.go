package host_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/session"
)

// A run is prepared from options, recorded in a session and verified from its log. The log is read as a list of
// records.
func ExamplePrepare() {
	ctx := context.Background()
	home, err := os.MkdirTemp("", "run-*")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(home)
	dir := filepath.Join(home, "parle")

	job, err := host.Prepare(host.Options{Model: "mlp-small", Data: "glyphs", Algorithm: "parle", Members: 4,
		Workers: 2, Seed: 1,
		Limit: event.Limit{Rounds: 3},
		Set:   []event.Setting{{Knob: "ell", Expr: "2"}, {Knob: "rho", Expr: "linear:1..0.1@3"}}})
	if err != nil {
		log.Fatal(err)
	}
	s, err := session.Create(dir)
	if err != nil {
		log.Fatal(err)
	}
	run, err := host.Start(job, s, nil, func(event.Record) {})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := run.Train(ctx); err != nil {
		log.Fatal(err)
	}
	if err := run.Close(); err != nil {
		log.Fatal(err)
	}

	rounds, hash := uint64(0), ""
	for rec, err := range session.Records(dir) {
		if err != nil {
			log.Fatal(err)
		}
		if rec.Commit != nil {
			rounds, hash = rec.Commit.To, rec.Commit.Hash
		}
	}
	again, err := (*host.Own)(nil).Verify(ctx, dir, 1, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(rounds, again.Last.Hash == hash)
	// Output: 3 true
}
