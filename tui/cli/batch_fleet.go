package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/remote"
	"brood/runtime/session"
	"brood/transport/wire"
)

// batchFleet trains the runs of a batch on workers of other processes, which come in by one URL and go from run to run.
type batchFleet struct {
	listen      string
	wait, enrol int

	server *remote.Server // nil: the runs are trained here
}

func (f *batchFleet) register(fl *pflag.FlagSet) {
	fl.StringVar(&f.listen, "listen", "", "train on workers of other machines, and not on this one: UDP address to listen on, such as :4433. It prints the command that joins them")
	fl.IntVar(&f.wait, "wait", 1, "workers of each run (with --listen)")
	fl.IntVar(&f.enrol, "enrol", 0, "how many workers the join URL lets in (with --listen; default: four times --jobs times --wait)")
}

func (f *batchFleet) check(c *cobra.Command, jobs int) error {
	given := c.Flags().Changed
	switch {
	case f.listen == "" && given("listen"):
		return usage("--listen: give HOST:PORT, or :PORT for all addresses of this machine")
	case f.listen == "":
		for _, name := range []string{"wait", "enrol"} {
			if given(name) {
				return usage("--%s is about workers of other machines: give --listen too", name)
			}
		}
		return nil
	case c.Flags().Lookup("workers") != nil && given("workers"):
		return usage("--workers are in this process, and --listen trains on others: --wait says how many each run has")
	case given("threads"):
		return usage("--threads are this machine's, and --listen trains on others: brood worker has --threads")
	case f.wait < 1 || f.wait > 1024:
		return usage("--wait %d: give 1 to 1024", f.wait)
	case given("enrol") && f.enrol < f.wait:
		return usage("--enrol %d lets fewer workers in than --wait %d waits for", f.enrol, f.wait)
	}
	if f.enrol == 0 {
		f.enrol = 4 * jobs * f.wait // those that take the place of lost ones too
	}
	return nil
}

// workers are those of a run that come from elsewhere; 0: the runs are trained here.
func (f *batchFleet) workers() int {
	if f.listen == "" {
		return 0
	}
	return f.wait
}

// open listens for workers, whom a server of the same directory knows again, and says how they come in; view is told who comes and
// goes. Close ends it. Where all runs are over the workers' processes end too, else they wait for the same command.
func (f *batchFleet) open(dir string, view *batchView) (close func() error, err error) {
	if f.listen == "" {
		return func() error { return nil }, nil
	}
	home := filepath.Join(dir, ".fleet")
	lock, err := session.Lock(home)
	var locked *session.LockedError
	if errors.As(err, &locked) {
		return nil, fmt.Errorf("another process lets workers in to %s: join them there, or leave --listen out to train on this machine", dir)
	}
	if err != nil {
		return nil, err
	}
	f.server, err = remote.Listen(remote.Config{Address: f.listen, Dir: home, Series: true, Enrol: f.enrol, Software: "brood " + versionText(), Note: view.note})
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	if url := f.server.Join(wire.Worker); view.json {
		_ = json.NewEncoder(view.s.out).Encode(map[string]any{"event": "join", "url": url})
	} else {
		fmt.Fprintf(view.s.out, "join: brood worker %s\n", url)
	}
	return func() error {
		if view.b.left() {
			f.server.Pause()
		}
		return errors.Join(f.server.Close(), lock.Close())
	}, nil
}

// serve is how a run starts that trains elsewhere.
func (f *batchFleet) serve(p prepared, watch func(event.Record)) (*host.Run, error) {
	return f.server.Serve(p.job, p.sess, p.from, watch, 0)
}
