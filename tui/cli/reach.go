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

// runConn is a connection to a running session, on this machine or on another one.
type runConn struct {
	*control.Client
	name      string                      // for messages
	dir       string                      // session directory; "" on another machine
	readOnly  bool                        // the run rejects commands of this connection
	wait      func(context.Context) error // blocks until the process of the run has ended
	closeConn func() error
}

// explain adds to an error of following the run that the run was killed or has no process, and how to resume it. It
// returns other errors unchanged.
func (r runConn) explain(err error) error {
	if errors.Is(err, view.ErrKilled) {
		return fmt.Errorf("session %s was killed after round %d: %s", r.name, session.Describe(r.dir).Round, r.resumeHint())
	}
	if errors.Is(err, view.ErrNoProcess) {
		return fmt.Errorf("%s: %w; %s", r.name, view.ErrNoProcess, r.resumeHint())
	}
	return err
}

// resumeHint returns how to resume the run once it has stopped.
func (r runConn) resumeHint() string {
	if r.dir == "" {
		return "its owner can resume it with brood serve --resume"
	}
	return "resume it with: " + resumeCommand(r.dir)
}

// resumeCommand returns the command that resumes the stopped session in dir. For a finished session it doubles
// --rounds: without more rounds there is nothing to resume.
func resumeCommand(dir string) string {
	x := session.Describe(dir)
	if x.Phase != event.Finished {
		return resumeLine(dir)
	}
	return fmt.Sprintf("%s --rounds %d", resumeLine(dir), max(1, 2*x.Round))
}

// resumeLine returns the command that resumes the session in dir, as `brood run` or `brood serve`; "" for no dir.
func resumeLine(dir string) string {
	switch {
	case dir == "":
		return ""
	case remote.Served(dir):
		return "brood serve --resume " + sessionArg(dir)
	}
	return "brood run --resume " + sessionArg(dir)
}

// sessionArg returns the shortest argument that names the session in dir: its name if it is in the home directory of
// sessions, else its path.
func sessionArg(dir string) string {
	if home, err := session.Home(); err == nil && filepath.Dir(dir) == home {
		return filepath.Base(dir)
	}
	return dir
}

// listCommand returns the command that lists the session in dir if it is outside the home directory of sessions; ""
// if it is inside.
func listCommand(dir string) string {
	home, err := session.Home()
	if err != nil {
		return ""
	}
	if abs, err := filepath.Abs(dir); err != nil || filepath.Dir(abs) == home {
		return ""
	}
	return "brood sessions " + filepath.Dir(dir)
}

// commandAndLeave sends a command and then returns the writer lease. The next client need not wait until the run
// notices that this one has disconnected.
func (r runConn) commandAndLeave(ctx context.Context, cmd event.Command) (event.Receipt, error) {
	r.ActAsUser()
	receipt, err := r.Command(ctx, cmd)
	if err == nil {
		_, _ = r.Lease(ctx, view.LeaseGive) // another client may have the lease, or the run may be over
	}
	return receipt, err
}

func (r runConn) Close() error {
	r.Client.Close()
	return r.closeConn()
}

// connect opens a running session by its name or path through its control socket, or by the URL of a viewer or an
// operator. name identifies this client; take requests the writer lease even if another client has it.
func connect(ctx context.Context, what, name string, take bool) (runConn, error) {
	if strings.Contains(what, "://") {
		return connectRemote(ctx, what, name, take)
	}
	dir, err := resolve(what)
	if err != nil {
		return runConn{}, err
	}
	base := filepath.Base(dir)
	if err := session.MayWatch(dir); err != nil {
		return runConn{}, err
	}
	if running, _ := session.Running(dir); !running {
		return runConn{}, fmt.Errorf("session %s is not running: resume it with `%s`, or replay it with `brood replay "+
			"%s`",
			base, resumeCommand(dir), sessionArg(dir))
	}
	client, err := control.Dial(dir, name, take)
	if errors.Is(err, fs.ErrPermission) {
		return runConn{}, session.Denied(filepath.Join(dir, "socket"))
	}
	if err != nil {
		return runConn{}, fmt.Errorf("session %s is locked by a process that does not answer (%w): wait a moment, or "+
			"end that process", base, err)
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
	return runConn{client, base, dir, false, over, func() error { return nil }}, nil
}

// connectRemote connects to a run by the join URL of a viewer or an operator.
func connectRemote(ctx context.Context, url, name string, take bool) (runConn, error) {
	join, err := identity.ParseJoin(url)
	if err != nil {
		return runConn{}, usage("%w", err)
	}
	key, err := remote.Key()
	if err != nil {
		return runConn{}, err
	}
	v, err := remote.Connect(ctx, key, join, name, "brood "+versionText())
	if err != nil {
		return runConn{}, err
	}
	over := func(ctx context.Context) error {
		select {
		case <-v.Gone():
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return runConn{control.NewClient(name, take, v.Dial), join.Address, "", v.Role() == wire.Viewer, over, v.Close}, nil
}
