package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"brood/models/usererr"
	"brood/runtime/host"
	"brood/runtime/launch"
	"brood/runtime/metrics"
	"brood/runtime/option"
	"brood/runtime/rendezvous"
	"brood/runtime/session"
)

func fleetCommand(s streams) *cobra.Command {
	c := &cobra.Command{Use: "fleet", Short: "Train on an existing fleet of machines", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return usage("fleet needs a command: launch, link or status; see `brood fleet --help`")
		}}
	c.AddCommand(launchCommand(s), fleetLinkCommand(s), fleetStatusCommand(s))
	return c
}

const launchLong = `Train one run on the machines of a fleet, with the preset and the flags of ` + "`brood serve`" + `.

  srun -N3 brood fleet launch --slurm PRESET            each task is a worker, and task 0 the coordinator too
  torchrun ... --no-python brood fleet launch --torchrun PRESET   the same, by RANK, WORLD_SIZE and MASTER_ADDR
  brood fleet launch --ssh a,b,eve@c:2222 PRESET        the coordinator runs here, and a worker on each host
  brood fleet launch --hostfile FILE PRESET             the same, with the hosts and slots of an MPI hostfile
  brood fleet launch --k8s --image IMAGE --pods 3 PRESET | kubectl apply -f -

The processes of a launch find each other through a folder that all of them can read ($BROOD_RENDEZVOUS; under Slurm the
submit directory), or by the secret $BROOD_SECRET.`

// launcher is `brood fleet launch`. It runs `brood serve`, `brood worker`, or both, and passes the join URL between
// them.
type launcher struct {
	slurm, torchrun, k8s bool
	hosts, hostfile      string
	rsh, brood           string
	image, name, claim   string
	resource             string
	pods                 int
	retry                time.Duration
	health               string // address

	own   []string // names of the flags that serve does not have
	flags *serveFlags
	serve *cobra.Command
	join  func(url string) // called with the join URL when the run accepts workers
	s     streams
}

func (l *launcher) execute(c *cobra.Command, args []string) error {
	var ways []string
	for _, name := range []string{"slurm", "torchrun", "ssh", "hostfile", "k8s"} {
		if f := c.Flags().Lookup(name); f.Changed && f.Value.String() != "false" {
			ways = append(ways, "--"+name)
		}
	}
	switch {
	case len(ways) == 0:
		return usage("fleet launch needs one of --slurm, --torchrun, --ssh HOSTS, --hostfile FILE and --k8s")
	case len(ways) > 1:
		return usage("%s exclude each other: give one of them", strings.Join(ways[:2], " and "))
	case l.retry < 0:
		return usage("--retry %s: give a duration such as 30s", l.retry)
	}
	if err := l.serve.Args(l.serve, args); err != nil {
		return err
	}
	for name, of := range map[string][]string{"image": {"--k8s"}, "pods": {"--k8s"}, "name": {"--k8s"}, "claim": {"--k8s"},
		"resource": {"--k8s"}, "rsh": {"--ssh", "--hostfile"}, "brood": {"--ssh", "--hostfile"}, "retry": {"--slurm",
			"--torchrun"}, "health": {"--slurm", "--torchrun"}} {
		if c.Flags().Changed(name) && !slices.Contains(of, ways[0]) {
			return usage("--%s applies to %s, not to %s", name, strings.Join(of, " and "), ways[0])
		}
	}
	switch {
	case l.k8s:
		return l.manifest(c, args)
	case l.slurm:
		return l.copy(c, args, launch.Slurm)
	case l.torchrun:
		return l.copy(c, args, launch.Torchrun)
	case l.hostfile != "":
		f, err := os.Open(l.hostfile)
		if err != nil {
			return fmt.Errorf("hostfile: %w", usererr.File(err, l.hostfile, "give the path of a file with a line for each host"))
		}
		hosts, err := launch.ParseHostfile(f)
		f.Close()
		if err != nil {
			return fmt.Errorf("hostfile %s: %w", l.hostfile, err)
		}
		return l.remote(c, args, hosts)
	}
	hosts, err := launch.ParseHosts(l.hosts)
	if err != nil {
		return usage("--ssh %w", err)
	}
	return l.remote(c, args, hosts)
}

// coordinate serves the run and calls url with the join URL. The run begins when `others` workers have joined, or the
// number of --wait, which must not exceed others. It returns when the run ends, or when ctx ends, with its cause.
func (l *launcher) coordinate(ctx context.Context, args []string, others int, url func(string)) error {
	fl := l.serve.Flags()
	wait, err := fl.GetInt(option.Wait.Name)
	if err != nil {
		return err
	}
	switch {
	case !fl.Changed(option.Wait.Name):
		if err := fl.Set(option.Wait.Name, strconv.Itoa(others)); err != nil {
			return err
		}
	case wait > others:
		return usage("--wait %d: only %d other workers are launched", wait, others)
	}
	if !fl.Changed("enrol") {
		if err := fl.Set("enrol", strconv.Itoa(max(1, others))); err != nil {
			return err
		}
	}
	l.join = url
	l.serve.SetContext(ctx)
	err = l.serve.RunE(l.serve, args)
	if ctx.Err() != nil && err != nil {
		return context.Cause(ctx)
	}
	return err
}

// hosting lists the options of a run that a launch passes to its workers.
var hosting = []*option.Option{option.Threads, option.Device}

// work hosts members of the run at a URL. Its output goes to standard error, since standard output belongs to the
// coordinator.
func (l *launcher) work(ctx context.Context, url string) error {
	w := workerCommand(streams{in: l.s.in, out: l.s.err, err: l.s.err})
	for _, x := range hosting {
		if f := l.serve.Flags().Lookup(x.Name); f.Changed {
			if err := w.Flags().Set(x.Name, f.Value.String()); err != nil {
				return err
			}
		}
	}
	w.SetContext(ctx)
	return w.RunE(w, []string{url})
}

// copy runs one of several processes of the same command: the first serves the run and also hosts members, the others
// join it.
func (l *launcher) copy(c *cobra.Command, args []string, place func(func(string) string) (launch.Place, error)) error {
	p, err := place(os.Getenv)
	if err != nil {
		return err
	}
	if l.health != "" {
		h, err := metrics.Listen("--health", l.health)
		if err != nil {
			return err
		}
		defer h.Close()
	}
	fl := l.serve.Flags()
	m, err := rendezvous.New(p, fl.Lookup("listen").Value.String(), os.Getenv)
	if err != nil {
		return err
	}
	if f := fl.Lookup(option.Device.Name); f.Changed {
		if err := f.Value.Set(p.Device(f.Value.String(), os.Getenv)); err != nil {
			return err
		}
	}
	if p.Rank > 0 {
		url, err := m.Await(c.Context(), l.retry)
		if err != nil {
			return fmt.Errorf("rank %d of %d: %w", p.Rank, p.Size, err)
		}
		if url == rendezvous.Complete {
			fmt.Fprintln(l.s.err, "brood: the run is complete")
			return nil
		}
		return l.work(c.Context(), url)
	}
	if !fl.Changed(option.Workers.Name) {
		if err := fl.Set(option.Workers.Name, "1"); err != nil {
			return err
		}
	}
	if f := fl.Lookup(option.Deadline.Name); p.End > 0 && !f.Changed {
		end := time.Unix(p.End, 0)
		if !end.After(time.Now()) {
			return fmt.Errorf("the deadline %s has passed, the end of the Slurm job at its start (SLURM_JOB_END_TIME): if the "+
				"job has more time, give --deadline none", end.Format(time.DateTime))
		}
		if err := fl.Set(f.Name, end.Format(time.RFC3339)); err != nil {
			return err
		}
	}
	begun, err := l.continues(p.Job)
	if err != nil {
		return err
	}
	if !fl.Changed("listen") && !m.FixedPort() && !begun {
		// the URL has the port, so that two runs on a node do not use the same one
		if err := fl.Set("listen", ":0"); err != nil {
			return err
		}
	}
	b, err := m.Publisher()
	if err != nil {
		return err
	}
	defer b.Close()
	ctx, cancel := context.WithCancelCause(c.Context())
	defer cancel(nil)
	err = l.coordinate(ctx, args, p.Size-1, func(url string) {
		if err := b.Publish(url); err != nil {
			cancel(err)
		}
	})
	if err != nil || !l.flags.run.complete || p.Size == 1 {
		return err
	}
	if err := b.Publish(rendezvous.Complete); err != nil {
		return err
	}
	select {
	case <-time.After(completeFor):
	case <-ctx.Done():
	}
	return nil
}

// completeFor is how long the first copy tells the others that the run is complete.
const completeFor = 10 * time.Second

// continues sets --continue, unless a flag says otherwise: a launcher that restarts this command continues its run. The
// session is that of --session, or named after the job; without either every start is a new run. begun reports whether
// the session exists.
func (l *launcher) continues(job string) (begun bool, err error) {
	fl := l.serve.Flags()
	if fl.Changed("resume") {
		return true, nil
	}
	dir := fl.Lookup("session").Value.String()
	if wanted, _ := fl.GetBool("continue"); fl.Changed("continue") && (!wanted || dir == "") {
		return false, nil
	}
	switch {
	case dir != "":
		dir, err = session.Place(dir)
	case job != "":
		dir, err = session.Home()
		dir = filepath.Join(dir, job)
	default:
		return false, nil
	}
	if err != nil {
		return false, err
	}
	begun, err = host.Begun(dir)
	return begun, errors.Join(err, fl.Set("session", dir), fl.Set("continue", "true"))
}

// manifest prints a Kubernetes manifest. Its pods launch with the same flags, under the environment variables of
// torchrun.
func (l *launcher) manifest(c *cobra.Command, args []string) error {
	address := l.serve.Flags().Lookup("listen").Value.String()
	host, port, err := net.SplitHostPort(address)
	n, err2 := strconv.Atoi(port)
	if err != nil || err2 != nil || host != "" {
		return usage("--listen %s: with --k8s give :PORT, and pods listen on their own addresses", address)
	}
	if l.serve.Flags().Changed("metrics") {
		return usage("--metrics: with --k8s it is always port %d of pod 0", launch.MetricsPort)
	}
	device := ""
	asked := l.serve.Flags().Lookup(option.Device.Name).Value.String()
	switch {
	case !option.IsCPU(asked):
		device = l.resource
		if _, index, _, err := option.ParseDevice(asked); err != nil {
			return err
		} else if index > 0 {
			return usage("--device %s: a pod has one device, number 0", asked)
		}
	case c.Flags().Changed("resource"):
		return usage("--resource %s: pods request it only if --device names a device", l.resource)
	}
	session := "" // another manifest of the same name is another run
	if fl := l.serve.Flags(); l.claim != "" && !fl.Changed("session") && !fl.Changed("resume") {
		session = l.name + "-" + strings.ToLower(rand.Text()[:8])
	}
	text, err := launch.Kubernetes{
		Name:    l.name,
		Image:   l.image,
		Pods:    l.pods,
		Port:    n,
		Secret:  rand.Text() + rand.Text(),
		Claim:   l.claim,
		Session: session,
		Device:  device,
		Args:    append(passOn(c, l.own...), args...),
	}.Manifest()
	if err != nil {
		return usage("%w", err)
	}
	_, err = fmt.Fprint(l.s.out, text)
	return err
}
