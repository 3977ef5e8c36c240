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
	"brood/transport/local"
)

// Hosting says who hosts a run besides this process. Job.Workers counts all workers that the first round waits for.
type Hosting struct {
	Workers  int                                // hosted here
	Link     func(id int) collective.Link       // of a worker hosted here
	Overhead func(id int) func() int64          // see worker.Config; may give nil
	Shape    func(event.Link) error             // see fleet.Config; may be nil
	Gate     func(control.Gate) (string, error) // lets others in; may be nil
	Fleet    func([]view.Worker) view.Fleet     // adds to what the core knows of the workers; may be nil
	Close    func()                             // ends them, while the session is still there; may be nil
}

// grace before a failure is blamed on the worker that reports it: longer than the transport takes to notice a death.
const grace = 5 * time.Second

// Serve is Start where workers of other processes take seats, in [Run.Fleet].
func Serve(j *Job, s *session.Session, from *Restored, watch func(event.Record), d Hosting) (*Run, error) {
	return start(j, s, from, watch, d, grace)
}

// alone: all workers are goroutines of this process.
func alone(j *Job) Hosting {
	hub := &local.Hub{}
	return Hosting{Workers: j.Workers, Link: func(id int) collective.Link { return hub.Link(id) }, Overhead: func(int) func() int64 { return nil }}
}

// Fleet is where workers of other processes take seats.
func (r *Run) Fleet() *fleet.Fleet { return r.fleet }

// AllKernels are the kinds of kernels that this machine can compute with where no device is asked for.
func AllKernels() []string {
	out, _ := (*Own)(nil).Kernels("") // asks nobody
	return out
}

// Kernels are the kinds of kernels that a worker here can compute with for the model, on the device that a person asked
// for, if any.
func (o *Own) Kernels(at string) (out []string, err error) {
	for _, m := range engines {
		out = append(out, m.kernels)
	}
	if kernels := requestedKernels(at); kernels != "" {
		out = []string{kernels}
	}
	if !option.Processor(at) {
		d, err := device(at)
		if err != nil {
			return nil, err
		}
		out = d.kinds()
	}
	if o.maximises() {
		out = append(out, objective.Kernels)
	}
	return out, nil
}
