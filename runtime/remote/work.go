package remote

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"brood/runtime/host"
	"brood/transport/identity"
	"brood/transport/quic"
	"brood/transport/wire"
)

// Worker is what a worker's process needs.
type Worker struct {
	Key       *identity.Key
	Join      identity.Join
	Listen    string        // UDP HOST:PORT; "" is any port
	Advertise string        // HOST:PORT where other workers reach this one; "" is where its packets come from
	Threads   int           // that compute
	Device    string        // that computes in their place, see [option.ParseDevice]; "": none
	Slow      float64       // how many times slower than this machine it computes; 0 and 1 are as fast as it can
	Fast      bool          // what it sends and receives is as fast as it can all the same
	Patience  time.Duration // for a coordinator that does not answer
	Software  string
	Leave     <-chan struct{} // closed when this worker shall go: it hands its members over first; may be nil
	Note      func(string)    // told what happens; may be nil
	Own       *host.Own       // the graph that the run trains, nil for a list of layers

	debt *host.Debt // of a worker that is slower
}

// RefusedError says that the coordinator does not want this worker, or has put it out: trying again is of no use.
type RefusedError struct{ Err error }

func (e *RefusedError) Error() string { return e.Err.Error() }
func (e *RefusedError) Unwrap() error { return e.Err }

const (
	firstPause = 200 * time.Millisecond
	maxPause   = time.Second // a coordinator that restarts has its workers back within this
)

// ErrLeft says that this worker has left, as it was told to.
var ErrLeft = errors.New("this worker has left")

// Work hosts members until the run is over, or the last one of a series (nil), it was told to leave (ErrLeft), ctx ends
// (its error; the coordinator is told, and the members are lost), or it cannot go on. A coordinator that is silent is
// dialled again for Patience; the worker then joins anew, by its key.
func Work(ctx context.Context, cfg Worker) (err error) {
	if cfg.Note == nil {
		cfg.Note = func(string) {}
	}
	settings := quic.Config{Key: cfg.Key, Address: cfg.Listen}
	if cfg.debt = host.NewDebt(cfg.Slow, cfg.Fast); cfg.debt != nil {
		settings.Sending = cfg.debt.Count
	}
	node, err := quic.Listen(settings)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	name, err := os.Hostname()
	if err != nil {
		name = "worker"
	}
	hello := wire.Hello{Role: wire.Worker, Name: name, Token: cfg.Join.Token, Software: cfg.Software}
	kinds, err := cfg.Own.Kernels(cfg.Device)
	if err != nil {
		return err
	}
	hello.Kernels = strings.Join(kinds, ",")
	if hello.Device, err = host.DeviceText(cfg.Device); err != nil {
		return err
	}
	if cfg.Advertise != "" {
		hello.Listen = []string{cfg.Advertise}
	}
	heard, pause, waited := time.Now(), firstPause, false
	for {
		peer, welcome, err := node.Dial(ctx, cfg.Join.Address, cfg.Join.Server, hello)
		if err == nil {
			hello.Run = welcome.Run
			err = stay(ctx, cfg, node, peer, welcome, &hello)
			heard, pause, waited = time.Now(), firstPause, false
		}
		if told(cfg.Leave) {
			if errors.Is(err, ErrHandover) {
				return fmt.Errorf("%w: %w", ErrLeft, err)
			}
			return ErrLeft
		}
		refused, no := errors.AsType[wire.Refused](err)
		_, out := errors.AsType[*RefusedError](err)
		waits := no && refused.Code == wire.CodeWait
		sent, back := errors.AsType[*away](err)
		switch {
		case err == nil:
			cfg.Note(errOver.Error())
			if !welcome.Series {
				return nil
			}
			continue
		case ctx.Err() != nil:
			return ctx.Err()
		case no && refused.Code == wire.CodeOver:
			cfg.Note(refused.Reason)
			return nil
		case out || no && !refused.Retry:
			return err
		case waits:
			heard = time.Now()
		case back:
			heard = time.Now().Add(sent.After)
		case time.Since(heard)+pause > cfg.Patience:
			return fmt.Errorf("the coordinator is not there for %s (%w): start the coordinator and this worker again", cfg.Patience, err)
		}
		if waits != waited {
			pause, waited = firstPause, waits
		}
		wait := pause
		switch {
		case back:
			wait = sent.After
			cfg.Note(fmt.Sprintf("%s; this worker comes back in %s, and tries for %s", sent.Why, sent.After, cfg.Patience))
		case pause > firstPause: // it was said
		case waits:
			cfg.Note(refused.Reason)
		default:
			cfg.Note(fmt.Sprintf("%v; trying again for %s", err, cfg.Patience))
		}
		select {
		case <-cfg.Leave:
			return ErrLeft
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
		if !back {
			pause = min(2*pause, maxPause)
		}
	}
}

// told says whether a channel was closed.
func told(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
