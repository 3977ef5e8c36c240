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

// Worker configures a worker's process.
type Worker struct {
	Key       *identity.Key
	Join      identity.Join
	Others    []identity.Join // tried in turn, after Join, while the coordinator does not answer
	Listen    string          // UDP HOST:PORT; "": any port
	Advertise string          // HOST:PORT where other workers reach this one; "": the source address of its packets
	Threads   int             // compute threads
	Device    string          // device that computes instead of the threads, see [option.ParseDevice]; "": none
	Machine   string          // its workers relay small collectives among each other; "": it is alone on its machine
	Slow      float64         // factor by which it computes slower than this machine can; 0 and 1: full speed
	Fast      bool            // do not slow down sending and receiving
	Patience  time.Duration   // how long to retry a coordinator that does not answer
	Software  string
	Leave     <-chan struct{} // closed to make this worker leave after its members have moved; may be nil
	Note      func(string)    // receives a line for each event; may be nil
	Own       *host.Own       // the graph that the run trains; nil for a list of layers

	debt *host.Debt // of a slowed worker; nil at full speed
}

// RefusedError reports that the coordinator refused or evicted this worker. Retrying is useless.
type RefusedError struct{ Err error }

func (e *RefusedError) Error() string { return e.Err.Error() }
func (e *RefusedError) Unwrap() error { return e.Err }

const (
	firstPause = 50 * time.Millisecond
	maxPause   = time.Second // workers return to a restarted coordinator within this time
)

// ErrLeft reports that this worker has left on request.
var ErrLeft = errors.New("this worker has left")

// Work hosts members until the run, or the last one of a series, is over (nil), it left on request (ErrLeft), ctx ends
// (its error; the coordinator is notified, and the members are lost), or it cannot continue. It retries a silent
// coordinator for cfg.Patience and then joins again by its key.
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
	hello := wire.Hello{Role: wire.Worker, Name: name, Software: cfg.Software}
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
	var kept *prepared
	defer func() { kept.free() }()
	answered, pause, waited := time.Now(), firstPause, false
	joins, at := append([]identity.Join{cfg.Join}, cfg.Others...), 0
	for {
		kept.setNumber(&hello)
		hello.Token = joins[at].Token
		peer, welcome, err := node.Dial(ctx, joins[at].Address, joins[at].Server, hello)
		if err == nil {
			hello.Run = welcome.Run
			err = runSession(ctx, cfg, node, peer, welcome, &hello, &kept)
			answered, pause, waited = time.Now(), firstPause, false
		}
		if isClosed(cfg.Leave) {
			if errors.Is(err, ErrHandover) {
				return fmt.Errorf("%w: %w", ErrLeft, err)
			}
			return ErrLeft
		}
		refused, no := errors.AsType[wire.Refused](err)
		_, out := errors.AsType[*RefusedError](err)
		waits := no && refused.Code == wire.CodeWait
		sent, back := errors.AsType[*evicted](err)
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
		case waits: // no run needs what this worker holds
			answered = time.Now()
			kept.free()
			kept = nil
		case back:
			answered = time.Now().Add(sent.After)
		case time.Since(answered)+pause > cfg.Patience:
			return fmt.Errorf("the coordinator did not answer for %s (%w): start the coordinator and this worker again",
				cfg.Patience, err)
		}
		if !no && !back { // it does not answer there
			at = (at + 1) % len(joins)
		}
		if waits != waited {
			pause, waited = firstPause, waits
		}
		wait := pause
		switch {
		case back:
			wait = sent.After
			cfg.Note(fmt.Sprintf("%s; this worker returns in %s and retries for %s",
				sent.Why, sent.After, cfg.Patience))
		case pause > firstPause: // already reported
		case waits:
			cfg.Note(refused.Reason)
		default:
			if _, ended := errors.AsType[*quic.GoneError](err); ended {
				err = fmt.Errorf("the connection to the coordinator ended: %w", err)
			}
			cfg.Note(fmt.Sprintf("%v; retrying for %s", err, cfg.Patience))
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

// isClosed reports whether a channel is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
