package quic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	quicgo "github.com/quic-go/quic-go"

	"brood/transport/wire"
)

// Cause is the class of reason for the end of a connection.
type Cause int

// Causes.
const (
	Closed    Cause = iota // this side closed it
	Left                   // the peer closed it or sent Leave
	Silent                 // no packet came from the peer: it died, hangs, or the network is cut; the reason says it all
	Restarted              // the peer's address answers with a stateless reset: it has a new process
	Broken                 // the peer broke the protocol or did not read, and this side cut it
	Ended                  // the peer cut the connection for another reason
	Missed                 // the peer received nothing from this side and cut the connection as silent
)

// GoneError is the error of a connection that has ended.
type GoneError struct {
	Cause  Cause
	Reason string
}

func (e *GoneError) Error() string {
	text := map[Cause]string{
		Closed:    "closed here",
		Left:      "it left",
		Restarted: "its process has restarted",
		Broken:    "it was cut off",
		Ended:     "it ended the connection",
		Missed:    "it received nothing from this side",
	}[e.Cause]
	switch {
	case e.Reason == "":
		return text
	case text == "":
		return e.Reason
	}
	return text + ": " + e.Reason
}

// broken returns the error that cuts a peer for breaking the protocol.
func broken(format string, args ...any) error {
	return &GoneError{Broken, fmt.Sprintf(format, args...)}
}

// Error codes that a connection is closed with.
const (
	codeDone   quicgo.ApplicationErrorCode = 0 // a regular end
	codeBroken quicgo.ApplicationErrorCode = 1 // the other side broke the protocol
	codeSilent quicgo.ApplicationErrorCode = 2 // no packet came from the other side
	codeBusy   quicgo.ApplicationErrorCode = 3 // the first message did not come, and other connections wait
)

// newGoneError converts an error of a connection into a GoneError.
func newGoneError(err error) *GoneError {
	if g, ok := errors.AsType[*GoneError](err); ok {
		return g
	}
	if r, ok := errors.AsType[wire.Refused](err); ok {
		return &GoneError{Ended, r.Error()}
	}
	if f, ok := errors.AsType[*wire.FormatError](err); ok {
		return &GoneError{Broken, f.Error()}
	}
	if v, ok := errors.AsType[*wire.VersionError](err); ok {
		return &GoneError{Broken, v.Error()}
	}
	if a, ok := errors.AsType[*quicgo.ApplicationError](err); ok {
		switch {
		case !a.Remote:
			return &GoneError{Closed, a.ErrorMessage}
		case a.ErrorCode == codeDone:
			return &GoneError{Left, wire.CleanText(a.ErrorMessage)}
		case a.ErrorCode == codeSilent:
			return &GoneError{Missed, ""}
		}
		return &GoneError{Ended, wire.CleanText(a.ErrorMessage)}
	}
	if _, ok := errors.AsType[*quicgo.StatelessResetError](err); ok {
		return &GoneError{Restarted, ""}
	}
	if _, ok := errors.AsType[*quicgo.IdleTimeoutError](err); ok {
		return &GoneError{Silent, "it sent nothing for " + idleTimeout.String()}
	}
	if t, ok := errors.AsType[*quicgo.TransportError](err); ok {
		if t.Remote {
			return &GoneError{Ended, wire.CleanText(t.Error())}
		}
		return &GoneError{Broken, wire.CleanText(t.Error())}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &GoneError{Broken, "it ended a stream"}
	}
	if _, ok := errors.AsType[*quicgo.StreamError](err); ok {
		return &GoneError{Broken, "it ended a stream"}
	}
	if errors.Is(err, ErrClosed) || errors.Is(err, quicgo.ErrTransportClosed) || errors.Is(err, context.Canceled) {
		return &GoneError{Closed, ""}
	}
	return &GoneError{Ended, wire.CleanText(err.Error())}
}

// dialError adds to the error of a failed dial what to do about it.
func dialError(address string, err error) error {
	hint := ""
	t, crypto := errors.AsType[*quicgo.TransportError](err)
	crypto = crypto && t.ErrorCode.IsCryptoError()
	_, handshake := errors.AsType[*quicgo.HandshakeTimeoutError](err)
	_, idle := errors.AsType[*quicgo.IdleTimeoutError](err)
	_, dns := errors.AsType[*net.DNSError](err)
	switch {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("dial %s: %w", address, err)
	case handshake, idle, errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("dial %s: nothing answers: check that brood serve runs there, that the address is right, "+
			"and that a firewall lets UDP through", address)
	// quic-go keeps only the error's text
	case strings.Contains(err.Error(), syscall.ENETUNREACH.Error()),
		strings.Contains(err.Error(), syscall.EHOSTUNREACH.Error()):
		return fmt.Errorf("dial %s: this machine has no route there: check the address in the URL, "+
			"and this machine's network", address)
	case dns:
		hint = ": check the name in the join URL"
	case crypto && !t.Remote:
		if inner := t.Unwrap()[1]; inner != nil {
			err = inner
		}
	case crypto:
		hint = ": the other side does not accept this program's certificate; run the same version of brood on both sides"
	case t != nil && t.ErrorCode == quicgo.ConnectionRefused:
		hint = ": it is too busy with others; try again"
	}
	return fmt.Errorf("dial %s: %s%s", address, wire.CleanText(err.Error()), hint)
}
