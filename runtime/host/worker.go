package host

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	goruntime "runtime"
	"slices"
	"time"

	"brood/models/engine"
	"brood/optim/collective"
	"brood/runtime/coordinator"
	"brood/runtime/option"
	"brood/runtime/worker"
	"brood/transport/local"
)

// Worker returns worker id, which computes with the given number of threads (at least 1). tests makes it take part in
// test evaluations and probes. overhead returns the bytes of protocol overhead on its links so far, see
// [worker.Config]; it may be nil.
func (j *Job) Worker(
	id int, link collective.Link, overhead func() int64, store worker.Store, threads int, tests bool,
) (*worker.Worker, error) {
	eng, err := j.engine(j.Config.Kernels, max(1, threads))
	if err != nil {
		return nil, err
	}
	if have := metricsOf(eng); !slices.Equal(have, j.Config.Metrics) {
		Release(eng)
		return nil, fmt.Errorf("the objective of the session has the metrics %q, and the program declares %q: give the "+
			"program of the session", j.Config.Metrics, have)
	}
	stats, err := j.initialStats()
	if err != nil {
		Release(eng)
		return nil, err
	}
	j.collect()
	cfg := worker.Config{
		ID:       id,
		Seed:     j.Config.Seed,
		Layout:   j.Net.Layout,
		Init:     j.init,
		Stats:    stats,
		Rebuild:  option.Rebuilt(option.Rebuild.Text(j.Options)),
		Engine:   eng,
		Metrics:  j.Config.Metrics,
		Data:     j.Samples,
		Link:     link,
		Direct:   j.Config.Direct,
		Evaluate: j.Config.Evaluate,
		Lookup:   j.lookup,
		Store:    store,
		Overhead: overhead,
		Clock:    func() int64 { return time.Now().UnixNano() },
	}
	if j.Slow != nil && !j.own.External() { // programs of the user are other processes, which cannot be slowed
		cfg.Engine, cfg.Slow = slow(eng, j.Slow, j.Lag)
	}
	if tests && !j.Modelless() {
		cfg.Test, cfg.Validation, cfg.Probe, cfg.Measure = j.Samples.Test(), j.validation(), j.Config.Probe, true
	}
	cfg.Measured = j.ungraded()
	return worker.New(cfg), nil
}

// singleWorker returns a worker without peers. threads 0 means one per processor; tests is as in [Job.Worker].
func (j *Job) singleWorker(files worker.Store, threads int, tests bool) (*worker.Worker, error) {
	return j.Worker(0, (&local.Hub{}).Link(0), nil, files, cmp.Or(threads, goruntime.NumCPU()), tests)
}

func (j *Job) init(ctx context.Context, m engine.Member, dst []float32) error {
	if j.initState != nil {
		copy(dst, j.initState)
		return nil
	}
	return j.own.init(ctx, j.Net, j.Config.Seed, m, dst)
}

// validation returns the validation samples that are scored with the test set.
func (j *Job) validation() []int32 {
	if j.own.Maximises() || j.Modelless() {
		return nil
	}
	return j.Samples.Validation()
}

// secret returns a number that no worker can know.
func secret() uint64 {
	var p [8]byte
	_, _ = rand.Read(p[:]) // it never fails
	return binary.LittleEndian.Uint64(p[:])
}

// core returns the coordinator configuration of the job.
func (j *Job) core() coordinator.Config {
	return coordinator.Config{
		Algorithm:  j.Alg.Name,
		Members:    j.Members,
		Wait:       j.Workers,
		MinWorkers: j.MinWorkers,
		Layout:     j.Net.Layout,
		Data:       j.size(),
		Tests:      j.Config.Test,
		Validation: len(j.validation()),
		Scores:     j.Config.Scores(),
		Metrics:    j.Config.Metrics,
		Maximises:  j.own.Maximises(),
		Direct:     j.Config.Direct,
		Audit:      j.Audit,
		Secret:     secret(),
		OnLoss:     coordinator.LossPolicy(j.Config.OnLoss),
		OnTrouble:  j.troublePolicy(),
		Limit:      j.Limit,
		Edits:      j.Edits,
		Lookup:     j.lookup,
		SavePeriod: coordinator.SaveByCost,
	}
}

// troublePolicy returns the policy of the options. The default is to stop in an unattended run, else to wait.
func (j *Job) troublePolicy() coordinator.TroublePolicy {
	if j.OnTrouble == "" && j.Unattended {
		return coordinator.OnTroubleStop
	}
	return cmp.Or(coordinator.TroublePolicy(j.OnTrouble), coordinator.OnTroubleWait)
}
