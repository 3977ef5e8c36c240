package host

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"brood/models/engine"
	"brood/runtime/alert"
	"brood/runtime/checkpoint"
	"brood/runtime/control"
	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/fleet"
	"brood/runtime/option"
	"brood/runtime/session"
	"brood/runtime/view"
	"brood/runtime/worker"
)

// Run is a session in progress in this process.
type Run struct {
	Job     *Job
	Session *session.Session
	Resumed *Restored // nil for a fresh run

	fleet    *fleet.Fleet
	hosting  Hosting
	control  *control.Server
	listen   net.Listener
	lastGood coordinator.LastGood // its checkpoint is retained: a run in trouble rolls back to it
	faults   coordinator.FaultRate
	pinned   []*event.Checkpoint // those that a plan rolled back to, which verify needs
	shorten  *shortening         // of the log
	windDown windDown
	retained checkpoint.Retention // the newest two checkpoints, and older ones to fork from
	alerts   alert.Dispatcher
	gauges   measurements
}

// Start opens the control socket of a run and prepares its fleet. watch is called with every record after it is in the
// log; it must not block. Call Close after Train.
func Start(j *Job, s *session.Session, from *Restored, watch func(event.Record)) (*Run, error) {
	return start(j, s, from, watch, alone(j), 0)
}

func start(
	j *Job, s *session.Session, from *Restored, watch func(event.Record), d Hosting, grace time.Duration,
) (*Run, error) {
	r := &Run{Job: j, Session: s, Resumed: from, hosting: d, retained: checkpoint.NewRetention(j.Options)}
	r.shorten = newShortening(j.Options, s, func(n coordinator.Note) { r.fleet.Note(n) })
	v := view.New()
	if from == nil {
		if err := j.saveInit(s.Dir()); err != nil {
			return nil, err
		}
	}
	if err := r.replayInto(v); err != nil {
		return nil, err
	}
	r.retained.DropMissing(s.Dir())
	var err error
	head := append(r.head(), r.lossAlerts()...)
	if err := s.Append(head...); err != nil { // in one call: the log of a fork always has its initial checkpoint
		return nil, err
	}
	for _, rec := range head {
		v.Apply(rec)
		r.track(rec)
		watch(rec)
	}
	r.control = control.NewServer(s.Dir(), v, func(ctx context.Context, c event.Command) (event.Receipt, error) {
		return r.fleet.Command(ctx, c)
	})
	r.control.Gate = d.Gate
	r.control.Fleet = r.survey
	core := j.core()
	core.LastGood, core.Faults = r.lastGood, r.faults
	if from != nil {
		core.Resume, core.Epoch, core.Late, core.Asked = &from.Checkpoint, from.Epoch, from.Late, from.Asked
		core.Cause, core.Edits, core.Met, core.Losses = event.CauseResume, nil, from.met, from.losses
		from.configure(&core)
		if from.branch {
			core.Cause = event.CauseFork
		}
	}
	store := &checkpoint.Files{Dir: s.Dir()}
	threads := max(1, j.Threads/max(1, d.Workers))
	log := &recorder{
		sess:    s,
		control: r.control,
		trouble: func(why event.PauseReason, reason string) { r.fleet.Trouble(why, reason) },
		framed:  time.Now(),
	}
	var recompute func(context.Context) (event.Checkpoint, error)
	if from != nil && from.recompute != nil {
		recompute = r.recomputed
	}
	r.fleet, err = fleet.New(fleet.Config{
		Core:    core,
		Log:     log,
		Workers: d.Workers,
		FirstID: from.firstID(),
		Respawn: time.Second,
		Grace:   grace,
		Shape:   d.Shape,
		Spawn: func(id int) (*worker.Worker, error) {
			w, err := j.Worker(id, d.Link(id), d.Overhead(id), store, threads, true)
			if err == nil {
				r.gauges.add(w)
			}
			return w, err
		},
		Recompute: recompute,
		Fault:     r.fault,
		Watch: func(rec event.Record) {
			r.prune(rec)
			r.alerts.Record(rec)
			r.gauges.take(rec)
			watch(rec)
		},
	})
	if err != nil {
		return nil, err
	}
	r.alerts.Raise = func(n alert.Note) {
		r.fleet.Note(coordinator.Note{Level: n.Level, Kind: n.Kind, Text: n.Text})
	}
	return r, r.open()
}

// head returns the records that precede those of the fleet: the configuration of a new session, and the state and
// checkpoint that a resumed run or a fork starts from.
func (r *Run) head() (out []event.Record) {
	now := time.Now().UnixNano()
	if r.Resumed == nil || r.Resumed.branch {
		out = append(out, event.Record{At: now, Config: &r.Job.Config})
	}
	if r.Resumed != nil {
		out = append(out, event.Record{At: now, State: &event.State{
			Round:  r.Resumed.Checkpoint.Round,
			Phase:  event.Waiting,
			Reason: event.Resumed,
			Limit:  &r.Job.Limit,
		}})
		if r.Resumed.reattach == nil {
			out = append(out, event.Record{At: now, Checkpoint: &r.Resumed.Checkpoint})
		}
	}
	return out
}

// lossAlerts returns an alert for each loss in the resumed session: a truncated log, and every skipped checkpoint.
func (r *Run) lossAlerts() (out []event.Record) {
	if r.Resumed == nil {
		return nil
	}
	round := r.Resumed.Checkpoint.Round
	if torn := r.Session.Recovery(); torn != nil {
		out = append(out, alertRecord(round, event.AlertLog, torn.String()))
	}
	for _, err := range r.Resumed.Skipped {
		out = append(out, alertRecord(round, event.AlertCheckpoint,
			err.Error()+"; it is skipped, and the rounds after an older one are executed again"))
	}
	return out
}

func alertRecord(round uint64, kind event.AlertKind, text string) event.Record {
	return event.Record{At: time.Now().UnixNano(), Alert: &event.Alert{
		Round:  round,
		Level:  event.LevelWarning,
		Kind:   kind,
		Text:   text,
		Member: engine.None,
	}}
}

// replayInto applies the existing records of the log to the view, the retained checkpoints and the alerts. It does
// nothing for a new run.
func (r *Run) replayInto(v *view.View) error {
	if r.Resumed == nil {
		return nil
	}
	for rec, err := range session.Records(r.Session.Dir()) {
		if err != nil {
			return err
		}
		v.Apply(rec)
		r.track(rec)
		r.alerts.Replay(rec)
	}
	return nil
}

// open listens on the session's socket.
func (r *Run) open() (err error) {
	if r.listen, err = control.Listen(r.Session.Dir()); err != nil {
		return err
	}
	r.control.Serve(r.listen)
	return nil
}

// track records which checkpoints to retain: the last good one, the newest two, older ones to fork from, and all that a
// plan rolled back to, which verify needs.
func (r *Run) track(rec event.Record) {
	r.lastGood.Take(rec)
	r.faults.Take(rec)
	r.retained.Add(rec)
	r.shorten.track(rec)
	r.windDown.take(rec)
	if newest := r.lastGood.Newest(); rec.Plan != nil && rec.Plan.From == event.Saved && newest != nil {
		r.pinned = append(r.pinned, newest)
	}
}

// prune tracks a record. After a checkpoint, or an alert about the disk, it removes the files of all checkpoints that
// are not retained.
func (r *Run) prune(rec event.Record) {
	if r.track(rec); rec.Checkpoint != nil || rec.Alert != nil && rec.Alert.Kind == event.AlertDisk {
		r.shorten.files.Lock()
		if b := r.shorten.begins; b != nil {
			r.pinned = slices.DeleteFunc(r.pinned, func(cp *event.Checkpoint) bool { return cp.Round < b.Round })
			r.retained.DropBefore(b.Round)
		}
		keep := slices.Concat(checkpoint.Paths(r.lastGood.Good), r.retained.Paths())
		for _, cp := range append([]*event.Checkpoint{r.shorten.begins, r.shorten.next}, r.pinned...) {
			keep = append(keep, checkpoint.Paths(cp)...)
		}
		_ = r.Session.Prune(keep) // a file that cannot be removed only takes up space
		r.shorten.files.Unlock()
	}
	r.shorten.start(rec)
}

// Train runs to the end. Interrupt stops it after the current round, with a checkpoint; canceling ctx stops it
// immediately, without one.
func (r *Run) Train(ctx context.Context) (coordinator.Exit, error) {
	defer r.gauges.begin(ctx, r.survey, r.fleet.Measured)()
	defer r.alerts.Start(ctx, filepath.Base(r.Session.Dir()), option.OnAlert.Text(r.Job.Options))()
	return r.fleet.Run(ctx)
}

// survey returns the current state of the workers and of all machines of the run.
func (r *Run) survey(ctx context.Context) view.Fleet {
	f := view.Fleet{Workers: r.fleet.Workers(ctx)}
	if r.hosting.Fleet != nil {
		f = r.hosting.Fleet(f.Workers)
	}
	f.Wait, f.Doing = r.Job.Workers, r.Doing()
	f.Machines = append([]event.Machine{r.gauges.machine()}, f.Machines...)
	return f
}

// Doing returns the current activity of the workers of all processes, nil if all of them are idle. It may be called
// from any goroutine. Workers of other processes report theirs about once a second.
func (r *Run) Doing() *view.Doing {
	var others []worker.Doing
	if r.hosting.Doing != nil {
		others = r.hosting.Doing()
	}
	return r.gauges.doing(time.Now(), others)
}

// Interrupt makes Train finish the current round, save a checkpoint and return.
func (r *Run) Interrupt() { r.fleet.Interrupt() }

// Command passes a command to the coordinator, as a client of the control socket would.
func (r *Run) Command(ctx context.Context, c event.Command) (event.Receipt, error) {
	return r.fleet.Command(ctx, c)
}

// Close closes the transport, the control socket and the log.
func (r *Run) Close() error {
	r.shorten.close()
	if r.hosting.Close != nil {
		r.hosting.Close()
	}
	if r.control != nil {
		r.control.Close()
	}
	if path, err := session.SocketPath(r.Session.Dir()); err == nil && r.listen != nil {
		os.Remove(path)
	}
	return r.Session.Close()
}
