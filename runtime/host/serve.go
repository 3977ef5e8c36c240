package host

import (
	"time"

	"brood/models/objective"
	"brood/optim/collective"
	"brood/runtime/control"
	"brood/runtime/event"
	"brood/runtime/fleet"
	"brood/runtime/option"
	"brood/runtime/session"
	"brood/runtime/view"
	"brood/runtime/worker"
	"brood/transport/local"
)

// Hosting connects a run to the workers of this process and of other ones. The first round waits for Job.Workers
// workers, which include those of other processes.
type Hosting struct {
	Workers  int                                // number of workers in this process
	Link     func(id int) collective.Link       // returns the link of a worker in this process
	Overhead func(id int) func() int64          // see worker.Config; may return nil
	Shape    func(event.Link) error             // see fleet.Config; may be nil
	Gate     func(control.Gate) (string, error) // opens the run to other processes; may be nil
	Fleet    func([]view.Worker) view.Fleet     // adds data about workers of other processes; may be nil
	Doing    func() []worker.Doing              // activities of workers of other processes; may be nil
	Close    func()                             // closes the transport, before the session is closed; may be nil
}

// grace is the delay before a failure is attributed to the worker that reports it. It is longer than the transport
// takes to detect a dead peer.
const grace = 5 * time.Second

// Serve is [Start] for a run that workers of other processes may join through [Run.Fleet].
func Serve(j *Job, s *session.Session, from *Restored, watch func(event.Record), d Hosting) (*Run, error) {
	return start(j, s, from, watch, d, grace)
}

// alone returns the Hosting of a run whose workers are all goroutines of this process.
func alone(j *Job) Hosting {
	hub := &local.Hub{}
	return Hosting{
		Workers:  j.Workers,
		Link:     func(id int) collective.Link { return hub.Link(id) },
		Overhead: func(int) func() int64 { return nil },
	}
}

// Fleet returns the fleet of the run, which workers of other processes join.
func (r *Run) Fleet() *fleet.Fleet { return r.fleet }

// AllKernels returns the kernels that this machine can compute with if no device is requested.
func AllKernels() []string {
	out, _ := (*Own)(nil).Kernels("") // queries no driver, so it cannot fail
	return out
}

// Kernels returns the kernels with which a worker of this machine can train the model, on the requested device at, or
// on the processor if at is empty. It returns an error if there is no such device.
func (o *Own) Kernels(at string) (out []string, err error) {
	for _, m := range engines {
		out = append(out, m.kernels)
	}
	out = append(out, builtInKernels)
	if kernels := requestedKernels(at); kernels != "" {
		out = []string{kernels}
	}
	if !option.IsCPU(at) && !o.trains() {
		d, err := device(at)
		if err != nil {
			return nil, err
		}
		out = d.kinds()
	}
	if o.trains() {
		out = append(out, o.Program.Kernels())
	}
	if o.Maximises() {
		out = append(out, objective.Kernels)
	}
	return out, nil
}
