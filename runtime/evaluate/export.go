package evaluate

import (
	"context"
	"fmt"
	"path/filepath"

	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/session"
	"brood/runtime/worker"
)

// Export returns the centre of the session in dir after round at (0: the last commit). own is the graph, the program or
// the objective of the session; nil for a list of layers. Rounds since the nearest checkpoint are recomputed and
// compared with the recorded commits; progress is called after each of them and may be nil. threads 0 means one per
// processor. The session does not change. If its data or its device are missing, a checkpoint of exactly this round is
// enough.
func Export(
	ctx context.Context, own *host.Own, dir string, at uint64, threads int, progress func(event.Commit),
) (*Model, error) {
	p, err := own.Past(dir, at)
	if err != nil {
		if p == nil || !p.Loadable() {
			return nil, err
		}
		w, err := p.Load(ctx, threads)
		if err != nil {
			return nil, err
		}
		return centre(ctx, p, w)
	}
	return recomputed(ctx, p, threads, progress)
}

// recomputed recomputes the session and returns its centre.
func recomputed(ctx context.Context, p *host.Past, threads int, progress func(event.Commit)) (*Model, error) {
	if p.Job.Modelless() {
		return nil, noModel(p)
	}
	w, err := p.Recompute(ctx, threads, progress)
	if err != nil {
		return nil, err
	}
	return centre(ctx, p, w)
}

// noModel returns the error for a session that trained no model.
func noModel(p *host.Past) error {
	return fmt.Errorf("%s trained no model: there is nothing to export", p.Name())
}

// centre returns the centre of worker w and frees the worker.
func centre(ctx context.Context, p *host.Past, w *worker.Worker) (*Model, error) {
	defer w.Free()
	params, stats, err := w.Centre(ctx)
	if err != nil {
		return nil, err
	}
	now, err := w.State(ctx)
	if err != nil {
		return nil, err
	}
	return fromSession(p, now, params, stats), nil
}

// CheckPredicts returns an error if the session has no model that can predict samples: it maximises an objective or
// trains no model.
func CheckPredicts(dir string) error {
	r, err := session.OpenReader(dir)
	if err != nil {
		return err
	}
	defer r.Close()
	first, err := r.Next()
	switch c := first.Config; {
	case err != nil || c == nil: // the next reader of the log reports it
		return nil
	case c.Objective != "":
		return fmt.Errorf("%s maximises %s, and no data set can score its parameters: their score is the fitness",
			filepath.Base(dir), c.Objective)
	case c.Program != "":
		return fmt.Errorf("%s trains the model of %s, which brood cannot compute on other samples: export it, and predict "+
			"with the program's library", filepath.Base(dir), c.Program)
	case c.Data == "":
		return fmt.Errorf("%s trained no model that could predict samples", filepath.Base(dir))
	}
	return nil
}
