package sweep

import (
	"errors"
	"path/filepath"

	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/remote"
	"brood/runtime/session"
	"brood/transport/wire"
)

// Fleet trains the runs of a batch on workers of other processes. They join by one URL and move from run to run.
type Fleet struct {
	batch  *Batch
	server *remote.Server
	lock   interface{ Close() error }
}

// Listen accepts up to enrol workers at a UDP address, in addition to workers that an earlier server of the same
// directory admitted. note receives messages about workers that join and leave. It returns a [session.LockedError] if
// another process accepts workers for the batch. The caller closes the fleet.
func (b *Batch) Listen(address string, enrol int, software string, note func(string)) (*Fleet, error) {
	home := filepath.Join(b.Dir, ".fleet")
	lock, err := session.Lock(home)
	if err != nil {
		return nil, err
	}
	server, err := remote.Listen(remote.Config{Address: address, Dir: home, Series: true, Enrol: enrol,
		Software: software, Note: note})
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return &Fleet{b, server, lock}, nil
}

// Join returns the URL by which workers join.
func (f *Fleet) Join() string { return f.server.Join(wire.Worker) }

// Serve starts a run on the workers of the fleet. watch is as in [host.Start].
func (f *Fleet) Serve(r Ready, watch func(event.Record)) (*host.Run, error) {
	return f.server.Serve(r.Job, r.Session, r.From, watch, 0)
}

// Close ends the fleet. If all runs are over, the worker processes exit; otherwise they wait until the batch continues.
func (f *Fleet) Close() error {
	if f.batch.Unfinished() {
		f.server.Pause()
	}
	return errors.Join(f.server.Close(), f.lock.Close())
}
