package control

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/fxamacker/cbor/v2"

	"brood/runtime/event"
	"brood/runtime/session"
	"brood/runtime/view"
)

const (
	patience     = 5 * time.Second  // for each part of an answer, after the wait of a request is over
	longPatience = 10 * time.Second // the same of a command, and of a snapshot, which may fold the log
	nextWait     = 2 * time.Second  // longest wait of a request for records, after which it is repeated
)

// maxMessage bounds the messages that either side reads, in bytes; the largest is a snapshot of many series.
const maxMessage = 256 << 20

type request struct {
	Client   string         `cbor:"0,keyasint"`
	Snapshot bool           `cbor:"1,keyasint,omitempty"`
	At       uint64         `cbor:"2,keyasint,omitempty"` // position of the snapshot, or after which to read records
	Max      int            `cbor:"3,keyasint,omitempty"`
	Command  *event.Command `cbor:"4,keyasint,omitempty"`
	Take     bool           `cbor:"5,keyasint,omitempty"` // take the writer's lease from another viewer
	Fleet    bool           `cbor:"6,keyasint,omitempty"`
	Gate     *Gate          `cbor:"7,keyasint,omitempty"`
	Wait     time.Duration  `cbor:"8,keyasint,omitempty"` // longest wait for records; 0: no limit
	// Lease is sent together with Fleet: a server too old to know Lease then answers with the fleet.
	Lease      view.LeaseAct       `cbor:"9,keyasint,omitempty"`
	Ahead      bool                `cbor:"10,keyasint,omitempty"`
	Viewer     string              `cbor:"11,keyasint,omitempty"` // identifies the viewer for the lease; "": not a viewer
	ProcessLog bool                `cbor:"12,keyasint,omitempty"` // sent together with Fleet, like Lease
	Known      *session.KnownLines `cbor:"13,keyasint,omitempty"` // with ProcessLog: the lines that the client already has
}

// maxViewer bounds the identifier of a viewer, in bytes; the server truncates longer ones.
const maxViewer = 32

// Gate is a request to the owner of a served run: to create a join URL, or to revoke a key.
type Gate struct {
	Role   string        `cbor:"0,keyasint,omitempty"` // of a new join URL: worker, viewer or operator
	Uses   int           `cbor:"1,keyasint,omitempty"` // how often the URL can be used
	TTL    time.Duration `cbor:"2,keyasint,omitempty"` // how long the URL is valid
	Revoke string        `cbor:"3,keyasint,omitempty"` // prefix of the hash of the key to revoke
	Expire bool          `cbor:"4,keyasint,omitempty"` // end the validity of all URLs
}

// patience returns the time that a server has to begin its answer to q, and then to continue it: a large view takes
// longer on a slow network.
func (q *request) patience() time.Duration {
	if q.Snapshot || q.Command != nil {
		return longPatience
	}
	return q.Wait + patience
}

type answer struct {
	Err     string         `cbor:"0,keyasint,omitempty"`
	EOF     bool           `cbor:"1,keyasint,omitempty"`
	View    *view.View     `cbor:"2,keyasint,omitempty"`
	Batch   view.Batch     `cbor:"3,keyasint,omitempty"`
	Receipt event.Receipt  `cbor:"4,keyasint,omitempty"`
	Viewers int            `cbor:"5,keyasint,omitempty"`
	Writer  bool           `cbor:"6,keyasint,omitempty"`
	Fleet   *view.Fleet    `cbor:"7,keyasint,omitempty"`
	URL     string         `cbor:"8,keyasint,omitempty"`
	Lease   view.Lease     `cbor:"9,keyasint,omitempty"`
	Ahead   *Ahead         `cbor:"10,keyasint,omitempty"` // nil once the run has started
	Lines   []session.Line `cbor:"11,keyasint,omitempty"`
	After   int            `cbor:"12,keyasint,omitempty"` // lines of the client that precede Lines; 0 from older servers
}

// transmit writes v as one message: its length as a little-endian uint32, then CBOR.
func transmit(w io.Writer, v any) error {
	p, err := cbor.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(p))), p...))
	return err
}

// head reads the length prefix of a message. It returns an error if the length exceeds most bytes.
func head(r io.Reader, most uint32) (size uint32, err error) {
	var n [4]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return 0, err
	}
	if size = binary.LittleEndian.Uint32(n[:]); size > most {
		return 0, fmt.Errorf("message of %d bytes is larger than %d", size, most)
	}
	return size, nil
}

// receive reads one message of at most most bytes into v.
func receive(r io.Reader, most uint32, v any) error {
	size, err := head(r, most)
	if err != nil {
		return err
	}
	p, err := io.ReadAll(io.LimitReader(r, int64(size)))
	if err != nil {
		return err
	}
	if len(p) < int(size) {
		return io.ErrUnexpectedEOF
	}
	return cbor.Unmarshal(p, v)
}

// Client is the client of a [Server]. It uses one connection for records and another for commands, so that waiting for
// records never delays a command. It may be used by several goroutines.
type Client struct {
	id       string
	viewer   string // random identifier for the writer's lease; "" after ActAsUser
	dir      string // of the session on this machine, whose log remains readable without its process; "" if remote
	dial     func(context.Context) (net.Conn, error)
	take     bool
	readOnly bool   // requests that need the right to command fail
	most     uint32 // largest answer, in bytes

	watch, act line
	mu         sync.Mutex
	viewers    int
	lines      []session.Line // process log as of the last call of ProcessLog
	lease      view.Lease
	leaseAt    time.Time // when lease was received
}

// line is one connection. mu serializes the calls that use it.
type line struct {
	mu sync.Mutex
	c  net.Conn
}

// NewClient returns a client for the user id. A user may have several viewers; the writer's lease belongs to one of
// them. A program that only reads passes an empty id and is not counted as a viewer. With take, the commands of the
// client take the lease from other viewers.
func NewClient(id string, take bool, dial func(context.Context) (net.Conn, error)) *Client {
	return &Client{id: id, viewer: rand.Text(), take: take, dial: dial, most: maxMessage}
}

// Bound makes the client reject answers of more than the given number of bytes. Call it before the first request.
func (c *Client) Bound(most uint32) { c.most = most }

// ActAsUser makes the client act for its user without being a viewer: its commands are accepted even while a viewer of
// this user holds the lease, and do not change the lease. Call it before the first request.
func (c *Client) ActAsUser() { c.viewer = "" }

// SetReadOnly makes the client read-only: like [Relay], it rejects requests that need the right to command. Call it
// before the first request.
func (c *Client) SetReadOnly() { c.readOnly = true }

// Dial connects to the control socket of the session in dir, on this machine. If the process of the run exits later,
// the client reads the log instead.
func Dial(dir, id string, take bool) (*Client, error) {
	c := local(dir, id, take)
	conn, err := c.dial(context.Background())
	if err != nil {
		return nil, err
	}
	c.watch.c = conn
	return c, nil
}

// local returns a client of the control socket of the session in dir, not yet connected.
func local(dir, id string, take bool) *Client {
	c := NewClient(id, take, func(ctx context.Context) (net.Conn, error) {
		socket, err := session.SocketPath(dir)
		if err != nil {
			return nil, err
		}
		d := net.Dialer{Timeout: 2 * time.Second}
		return d.DialContext(ctx, "unix", socket)
	})
	c.dir = dir
	return c
}

// Close closes the connections. A viewer that holds the lease releases it first, since the server could not tell a
// closed connection from a lost one.
func (c *Client) Close() {
	if _, l := c.Watchers(); l.Mine && c.viewer != "" {
		c.leave()
	}
	for _, l := range []*line{&c.watch, &c.act} {
		l.mu.Lock()
		if l.c != nil {
			l.c.Close()
			l.c = nil
		}
		l.mu.Unlock()
	}
}

// patientReader reads from a connection, and fails if nothing arrives for the time patience.
type patientReader struct {
	conn     net.Conn
	patience time.Duration
}

func (r patientReader) Read(p []byte) (int, error) {
	if err := r.conn.SetReadDeadline(time.Now().Add(r.patience)); err != nil {
		return 0, err
	}
	return r.conn.Read(p)
}

// ask sends a request over l, which it dials if needed, and returns the answer. After an error of the connection or the
// end of ctx it closes the connection. The end of a run is io.EOF.
func (c *Client) ask(ctx context.Context, l *line, q request) (a answer, err error) {
	if c.readOnly && q.commands() {
		return refuse(q), errReadOnly
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.c == nil {
		if l.c, err = c.dial(ctx); err != nil {
			return a, fmt.Errorf("the run does not answer: %w", err)
		}
	}
	conn := l.c
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	q.Client, q.Viewer, q.Take = c.id, c.viewer, c.take
	err = conn.SetWriteDeadline(time.Now().Add(q.patience()))
	if err == nil {
		err = transmit(conn, q)
	}
	if err == nil {
		err = receive(patientReader{conn, q.patience()}, c.most, &a)
	}
	if !stop() || err != nil {
		conn.Close()
		l.c = nil
	}
	switch {
	case ctx.Err() != nil:
		return a, ctx.Err()
	case errors.Is(err, os.ErrDeadlineExceeded):
		text := fmt.Sprintf("the run is suspended or overloaded: it did not answer for %.0f s", q.patience().Seconds())
		if q.commands() {
			text += ", and may still do what was asked"
		}
		return a, errors.New(text)
	case errors.Is(err, io.EOF): // the connection was lost; the end of a run is a.EOF
		return a, fmt.Errorf("the run does not answer: %w", io.ErrUnexpectedEOF)
	case err != nil:
		return a, fmt.Errorf("the run does not answer: %w", err)
	case a.EOF:
		return a, io.EOF
	case a.Err != "":
		return a, errors.New(a.Err)
	}
	c.mu.Lock()
	c.viewers, c.lease, c.leaseAt = a.Viewers, a.Lease, time.Now()
	c.mu.Unlock()
	return a, nil
}

// leaveTimeout bounds the wait for an answer when the client releases its lease.
const leaveTimeout = time.Second

// leave releases the lease if the connection for commands is open.
func (c *Client) leave() {
	c.act.mu.Lock()
	open := c.act.c != nil
	c.act.mu.Unlock()
	if open {
		ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
		defer cancel()
		_, _ = c.ask(ctx, &c.act, request{Fleet: true, Lease: view.LeaseLeave}) // on an error the lease expires
	}
}

// Snapshot returns the view after the first at records, or after all of them if there are fewer.
func (c *Client) Snapshot(ctx context.Context, at view.Position) (*view.View, error) {
	a, err := c.ask(ctx, &c.watch, request{Snapshot: true, At: at})
	if err == nil && a.View == nil {
		err = errors.New("the run sent no view")
	}
	if err != nil && c.orphaned(ctx) {
		return c.finalView(at)
	}
	return a.View, err
}

// Next waits for records after a position and returns at most the given number of them. It returns io.EOF at the end of
// the run, and context.DeadlineExceeded if no record arrives before the deadline of ctx. A run that does not answer is
// an error after some seconds, also while it has no records.
func (c *Client) Next(ctx context.Context, after view.Position, most int) (view.Batch, error) {
	q := request{At: after, Max: most}
	// the server ends a wait, so that the connection stays usable
	asking, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			cancel()
		}
	})()
	for {
		q.Wait = nextWait
		if d, ok := ctx.Deadline(); ok {
			q.Wait = min(q.Wait, max(time.Until(d), time.Millisecond))
		}
		a, err := c.ask(asking, &c.watch, q)
		switch {
		case err == nil && len(a.Batch.Records) == 0 && ctx.Err() == nil:
			continue
		case err == nil && len(a.Batch.Records) == 0:
			err = ctx.Err()
		case err != nil && !errors.Is(err, io.EOF) && c.orphaned(asking):
			return c.remainingRecords(after, most)
		}
		return a.Batch, err
	}
}

// Command sends a command and returns its receipt.
func (c *Client) Command(ctx context.Context, cmd event.Command) (event.Receipt, error) {
	a, err := c.ask(ctx, &c.act, request{Command: &cmd})
	return a.Receipt, err
}

// Fleet returns the current state of the workers; it is empty if the run does not report one.
func (c *Client) Fleet(ctx context.Context) (view.Fleet, error) {
	a, err := c.ask(ctx, &c.act, request{Fleet: true})
	if err != nil || a.Fleet == nil {
		return view.Fleet{}, err
	}
	return *a.Fleet, nil
}

// ProcessLog returns the process log of the run, oldest line first. It needs the right to command: a read-only client
// gets an error. A server too old to know the request returns no lines.
func (c *Client) ProcessLog(ctx context.Context) ([]session.Line, error) {
	if c.dir != "" && !c.readOnly { // needs no running process
		return session.ProcessLog(c.dir)
	}
	c.mu.Lock()
	lines := c.lines
	c.mu.Unlock()
	known := session.KnownLinesOf(lines)
	a, err := c.ask(ctx, &c.act, request{Fleet: true, ProcessLog: true, Known: &known})
	if err != nil {
		return nil, err
	}
	if a.After < 0 || a.After > known.Lines {
		return nil, fmt.Errorf("process log: the run sent the lines after line %d, but the client has %d",
			a.After, known.Lines)
	}
	lines = slices.Concat(lines[:a.After], a.Lines)
	c.mu.Lock()
	c.lines = lines
	c.mu.Unlock()
	return slices.Clone(lines), nil
}

// Gate makes a served run create a join URL, which it returns, or revoke a key.
func (c *Client) Gate(ctx context.Context, g Gate) (url string, err error) {
	a, err := c.ask(ctx, &c.act, request{Gate: &g})
	return a.URL, err
}

// Lease requests, transfers or queries the writer's lease, and returns its state.
func (c *Client) Lease(ctx context.Context, act view.LeaseAct) (view.Lease, error) {
	a, err := c.ask(ctx, &c.act, request{Fleet: true, Lease: act})
	return a.Lease, err
}

// Watchers returns the number of viewers and the state of the writer's lease, both as of the last answer. An expired
// lease is zero.
func (c *Client) Watchers() (int, view.Lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.lease
	if l.Left -= time.Since(c.leaseAt); l.Left <= 0 {
		l = view.Lease{}
	}
	return c.viewers, l
}
