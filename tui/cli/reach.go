package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"brood/runtime/control"
	"brood/runtime/event"
	"brood/runtime/remote"
	"brood/runtime/session"
	"brood/runtime/view"
	"brood/transport/identity"
	"brood/transport/wire"
)

// reached is a running session, here or elsewhere.
type reached struct {
	*control.Client
	name string                      // for a person
	dir  string                      // of the session; "" elsewhere
	look bool                        // only: its commands would be refused
	over func(context.Context) error // waits for the end of its process
	shut func() error
}

// broken adds to an error of following the run where it ended, and how to go on, as far as that is known here.
func (r reached) broken(err error) error {
	if errors.Is(err, view.ErrKilled) {
		return fmt.Errorf("session %s was killed after round %d: %s", r.name, session.Describe(r.dir).Round, r.goOn())
	}
	if errors.Is(err, view.ErrNoProcess) {
		return fmt.Errorf("%s: %w; %s", r.name, view.ErrNoProcess, r.goOn())
	}
	return err
}

// goOn says how to resume the run once it has stopped.
func (r reached) goOn() string {
	if r.dir == "" {
		return "its owner goes on with it by brood serve --resume"
	}
	return "go on with: " + goesOnBy(r.dir)
}

// goesOnBy goes on with the session in dir, which does not run. One that did all that it was told is given as many
// rounds again: without more there is nothing to go on with.
func goesOnBy(dir string) string {
	x := session.Describe(dir)
	if x.Phase != event.Finished {
		return resumeLine(dir)
	}
	return fmt.Sprintf("%s --rounds %d", resumeLine(dir), max(1, 2*x.Round))
}

// resumeLine is what goes on with the session in dir, as it was begun; "" for none.
func resumeLine(dir string) string {
	switch {
	case dir == "":
		return ""
	case remote.Served(dir):
		return "brood serve --resume " + called(dir)
	}
	return "brood run --resume " + called(dir)
}

// called is how a person names the session in dir: by its name where that is enough.
func called(dir string) string {
	if home, err := session.Home(); err == nil && filepath.Dir(dir) == home {
		return filepath.Base(dir)
	}
	return dir
}

// listedBy is what lists the session in dir where it does not lie among this person's sessions; "" where it does.
func listedBy(dir string) string {
	home, err := session.Home()
	if err != nil {
		return ""
	}
	if abs, err := filepath.Abs(dir); err != nil || filepath.Dir(abs) == home {
		return ""
	}
	return "brood sessions " + filepath.Dir(dir)
}

// once gives the only command of who leaves now: the writer's lease is free for the next at once, and not only when the
// other end hears of the leaving.
func (r reached) once(ctx context.Context, cmd event.Command) (event.Receipt, error) {
	r.Stand()
	receipt, err := r.Command(ctx, cmd)
	if err == nil {
		_, _ = r.Lease(ctx, view.LeaseGive) // another may hold it, or the run be over
	}
	return receipt, err
}

func (r reached) Close() error {
	r.Client.Close()
	return r.shut()
}

// reach opens the control socket of a running session, by its name or path, or by the URL of a viewer or an operator. name is who
// comes.
func reach(ctx context.Context, what, name string, take bool) (reached, error) {
	if strings.Contains(what, "://") {
		return call(ctx, what, name, take)
	}
	dir, err := resolve(what)
	if err != nil {
		return reached{}, err
	}
	base := filepath.Base(dir)
	if err := session.MayWatch(dir); err != nil {
		return reached{}, err
	}
	if running, _ := session.Running(dir); !running {
		return reached{}, fmt.Errorf("session %s is not running: go on with it by `%s`, or look back with `brood replay %s`", base, goesOnBy(dir), called(dir))
	}
	client, err := control.Dial(dir, name, take)
	if errors.Is(err, fs.ErrPermission) {
		return reached{}, session.Denied(filepath.Join(dir, "socket"))
	}
	if err != nil {
		return reached{}, fmt.Errorf("session %s is locked by a process that does not answer (%w): wait a moment, or end that process", base, err)
	}
	over := func(ctx context.Context) error {
		for {
			if running, _ := session.Running(dir); !running {
				return nil
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	return reached{client, base, dir, false, over, func() error { return nil }}, nil
}

// call reaches a run elsewhere.
func call(ctx context.Context, url, name string, take bool) (reached, error) {
	join, err := identity.ParseJoin(url)
	if err != nil {
		return reached{}, usage("%w", err)
	}
	key, err := remote.Key()
	if err != nil {
		return reached{}, err
	}
	v, err := remote.Call(ctx, key, join, name, "brood "+versionText())
	if err != nil {
		return reached{}, err
	}
	over := func(ctx context.Context) error {
		select {
		case <-v.Gone():
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return reached{control.NewClient(name, take, v.Dial), join.Address, "", v.Role() == wire.Viewer, over, v.Close}, nil
}
