package cli

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"brood/runtime/remote"
	"brood/transport/wire"
)

func launchCommand(s streams) *cobra.Command {
	l := &launcher{s: s}
	c := &cobra.Command{Use: "launch --slurm|--torchrun|--ssh HOSTS|--hostfile FILE|--k8s [PRESET|FILE.toml]",
		Short: "Start the workers and the coordinator of one run: with Slurm, torchrun, ssh or Kubernetes", Long: launchLong,
		DisableFlagsInUseLine: true, RunE: l.execute}
	fl := c.Flags()
	fl.BoolVar(&l.slurm, "slurm", false,
		"run as the task of srun or of a job array, numbered by SLURM_PROCID or SLURM_ARRAY_TASK_ID")
	fl.BoolVar(&l.torchrun, "torchrun", false, "run as rank RANK of WORLD_SIZE")
	fl.StringVar(&l.hosts, "ssh", "", "start a worker on each of these hosts: [USER@]HOST[:PORT],...")
	fl.StringVar(&l.hostfile, "hostfile", "",
		"start a worker for each slot of this hostfile, in the format of Open MPI and MPICH")
	fl.BoolVar(&l.k8s, "k8s", false, "print a manifest for Kubernetes: an Indexed Job and what it needs")
	fl.StringVar(&l.rsh, "rsh", "ssh", "program that connects to hosts, with its flags")
	fl.StringVar(&l.brood, "brood", "brood", "brood on the hosts: a path, or a name in the PATH there")
	fl.StringVar(&l.image, "image", "", "container image that has brood in its PATH (with --k8s)")
	fl.IntVar(&l.pods, "pods", 3, "number of pods (with --k8s)")
	fl.StringVar(&l.name, "name", "brood", "name of the Job (with --k8s)")
	fl.StringVar(&l.claim, "claim", "", "PersistentVolumeClaim of all pods, for sessions and data (with --k8s)")
	fl.StringVar(&l.resource, "resource", "nvidia.com/gpu",
		"Kubernetes resource of a device; each pod requests one if --device asks for a device (with --k8s)")
	fl.DurationVar(&l.retry, "retry", 5*time.Minute, "how long a worker waits for the coordinator's join URL")
	fl.StringVar(&l.health, "health", "",
		"answer at http://HOST:PORT/healthz while this process responds; :PORT is this machine only (with --slurm and "+
			"--torchrun)")
	fl.VisitAll(func(f *pflag.Flag) { l.own = append(l.own, f.Name) })
	// The token of the URL must not appear in a log; the launcher passes it to the other ranks.
	l.flags, l.serve = newServe(s, func(_ printer, srv *remote.Server) { l.join(srv.Join(wire.Worker)) })
	fl.AddFlagSet(l.serve.Flags()) // both commands share the values
	return c
}
