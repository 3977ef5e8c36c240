package cli

import (
	"context"
	"sync"
	"time"

	"brood/runtime/door"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/session"
	"brood/tui"
)

// library is what the workbench can open: the sessions of this user on this machine.
type library struct {
	mu sync.Mutex
	at tui.Opened // last
}

// live is a running session as the workbench takes it.
func live(dir string, client *door.Client) tui.Opened {
	return tui.Opened{Session: dir, Source: client, Commander: client, Resume: resumeLine(dir), Close: func() error { client.Close(); return nil }}
}

// recorded is a recording as the workbench takes it.
func recorded(dir string, r *session.Reader) tui.Opened {
	return tui.Opened{Session: dir, Source: tui.NewReplay(r), Close: r.Close}
}

// last is the session that was opened last.
func (l *library) last() tui.Opened {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at
}

func (l *library) went(o tui.Opened) tui.Opened {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at = o
	return o
}

// Sessions implements tui.Library.
func (l *library) Sessions(context.Context) ([]session.Info, error) {
	home, err := session.Home()
	if err != nil {
		return nil, err
	}
	return session.List(home)
}

// Open implements tui.Library.
func (l *library) Open(ctx context.Context, dir string) (tui.Opened, error) {
	if running, _ := session.Running(dir); running {
		run, err := reach(ctx, dir, clientName(), false)
		if err != nil {
			return tui.Opened{}, err
		}
		return l.went(live(run.dir, run.Client)), nil
	}
	r, err := session.OpenReader(dir)
	if err != nil {
		return tui.Opened{}, err
	}
	return l.went(recorded(dir, r)), nil
}

// Delete implements tui.Library: only what is listed can be deleted.
func (l *library) Delete(_ context.Context, dir string) error {
	_, err := removeSession(dir)
	return err
}

// Branch implements tui.Brancher.
func (l *library) Branch(ctx context.Context, b tui.Branch) (tui.Opened, error) {
	home, err := session.Home()
	if err != nil {
		return tui.Opened{}, err
	}
	keep := existing(home)
	dir, err := session.NewDir("fork", time.Now())
	if err != nil {
		return tui.Opened{}, err
	}
	o := host.Order{Dir: dir, From: b.Session, At: b.At, Options: host.Options{By: "fork"}}
	for _, s := range b.Set {
		o.Options.Set = append(o.Options.Set, event.Setting{Knob: s.Knob, Expr: s.Expr})
	}
	client, err := forkDetached(ctx, o, keep, b.Told)
	if err != nil {
		return tui.Opened{}, err
	}
	return l.went(live(dir, client)), nil
}
