package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"brood/runtime/door"
	"brood/runtime/remote"
	"brood/runtime/session"
	"brood/transport/identity"
)

// reached is a running session, here or elsewhere.
type reached struct {
	*door.Client
	name string                      // for a person
	dir  string                      // of the session; "" elsewhere
	over func(context.Context) error // waits for the end of its process
	shut func() error
}

// goOn says how to resume the run once it has stopped.
func (r reached) goOn() string {
	if r.dir == "" {
		return "its owner goes on with it by brood serve --resume"
	}
	return "go on with: brood run --resume " + r.name
}

func (r reached) Close() error {
	r.Client.Close()
	return r.shut()
}

// reach opens the door of a running session, by its name or path, or by the URL of a viewer or an operator.
func reach(ctx context.Context, what string, take bool) (reached, error) {
	if strings.Contains(what, "://") {
		return call(ctx, what, take)
	}
	dir, err := resolve(what)
	if err != nil {
		return reached{}, err
	}
	name := filepath.Base(dir)
	if running, _ := session.Running(dir); !running {
		return reached{}, fmt.Errorf("session %s is not running: go on with it by `brood run --resume %s`, or look back with `brood replay %s`", name, name, name)
	}
	client, err := dial(dir, clientName(), take)
	if err != nil {
		return reached{}, fmt.Errorf("session %s is locked by a process that does not answer (%w): wait a moment, or end that process", name, err)
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
	return reached{client, name, dir, over, func() error { return nil }}, nil
}

// dial opens the door of a session in this directory.
func dial(dir, who string, take bool) (*door.Client, error) {
	socket, err := session.SocketPath(dir)
	if err != nil {
		return nil, err
	}
	return door.Dial(socket, who, take)
}

// call reaches a run elsewhere.
func call(ctx context.Context, url string, take bool) (reached, error) {
	join, err := identity.ParseJoin(url)
	if err != nil {
		return reached{}, usage("%w", err)
	}
	key, err := remote.Key()
	if err != nil {
		return reached{}, err
	}
	v, err := remote.Call(ctx, key, join, clientName(), "brood "+versionText())
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
	return reached{door.NewClient(clientName(), take, v.Dial), join.Address, "", over, v.Close}, nil
}
