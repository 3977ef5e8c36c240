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

// Fleet trains the runs of a batch on workers of other processes, which come in by one URL and go from run to run.
type Fleet struct {
	batch  *Batch
	server *remote.Server
	lock   interface{ Close() error }
}

// Listen lets workers in at a UDP address, as many as enrol says, and knows those again that a server of the same
// directory let in. note hears who comes and goes. The error is a [session.LockedError] where another process lets
// workers in. Close the fleet.
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

// Join is the URL by which workers come in.
func (f *Fleet) Join() string { return f.server.Join(wire.Worker) }

// Serve starts a run whose workers come from elsewhere. watch is as in [host.Start].
func (f *Fleet) Serve(r Ready, watch func(event.Record)) (*host.Run, error) {
	return f.server.Serve(r.Job, r.Session, r.From, watch, 0)
}

// Close ends the fleet. Where all runs are over the workers' processes end too, else they wait for the same batch.
func (f *Fleet) Close() error {
	if f.batch.Left() {
		f.server.Pause()
	}
	return errors.Join(f.server.Close(), f.lock.Close())
}
