// Package rendezvous passes the join URL of a run from rank 0 of a launch to the other ranks: by a file in a shared
// folder that only its owner can read, or, with a secret that all ranks share, by a TCP port of rank 0.
package rendezvous

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"brood/models/usererr"
	"brood/runtime/launch"
	"brood/transport/identity"
)

// Rendezvous is how the ranks of a launch learn the join URL from rank 0. Without a secret it is a file in a shared
// folder that only its owner can read. With a secret that all ranks share it is a TCP port of rank 0, which sends the
// sealed URL to every client.
type Rendezvous struct {
	file   string // "" with a secret
	secret string // "" with a file
	leader string // host of rank 0
	listen string // UDP address of rank 0; the TCP port has the same number
}

// New selects the rendezvous from BROOD_SECRET, BROOD_RENDEZVOUS and the folder of the place. listen is the address of
// --listen on rank 0. It fails if the ranks have neither a secret nor a folder, or if a secret comes without a leader
// or without a fixed port.
func New(p launch.Place, listen string, env func(string) string) (m Rendezvous, err error) {
	m = Rendezvous{secret: env("BROOD_SECRET"), leader: p.Leader, listen: listen}
	folder := cmp.Or(env("BROOD_RENDEZVOUS"), p.Folder)
	switch {
	case m.secret != "":
		if _, err := launch.Seal(m.secret, ""); err != nil {
			return m, fmt.Errorf("BROOD_SECRET: %w", err)
		}
		if m.leader == "" {
			return m,
				errors.New("BROOD_SECRET cannot be used in a job array, whose tasks do not know the host of the " +
					"first one: " +
					"unset it, and set BROOD_RENDEZVOUS to a folder that all tasks can read")
		}
		if _, port, err := net.SplitHostPort(listen); err != nil || port == "0" {
			return m, usererr.Errorf("--listen %s: with BROOD_SECRET give HOST:PORT or :PORT, since all ranks must "+
				"know the port",
				listen)
		}
	case folder == "":
		return m, errors.New("the ranks share no folder and no secret: set BROOD_RENDEZVOUS to a folder that all of " +
			"them can " +
			"read, or BROOD_SECRET to the same random text on all, such as from `openssl rand -hex 32`")
	default:
		m.file = filepath.Join(folder, "brood-"+p.Run+".join")
	}
	return m, nil
}

// Complete is published in place of a join URL when there is nothing to join, since the run is complete.
const Complete = "complete"

// FixedPort reports whether rank 0 must listen on the port of the given address, where the other ranks look for it.
func (m Rendezvous) FixedPort() bool { return m.secret != "" }

// Publisher makes the join URL available to the other ranks until it is closed. Publish is called at most once.
type Publisher interface {
	Publish(url string) error
	Close()
}

// Publisher prepares the publication on rank 0: it listens on the TCP port, or checks that the folder is writable and
// removes a stale file. The caller closes the result.
func (m Rendezvous) Publisher() (Publisher, error) {
	if m.secret != "" {
		l, err := net.Listen("tcp", m.listen)
		if err != nil {
			return nil, fmt.Errorf("listen for the other ranks on TCP %s: %w", m.listen, err)
		}
		return &tcpPublisher{secret: m.secret, listener: l}, nil
	}
	// Waiting ranks must not read the file of an earlier run with the same name.
	if err := os.Remove(m.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove the join URL of an earlier launch: %w", err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(m.file), ".brood-*.join") // mode 0600
	if err != nil {
		return nil, fmt.Errorf("create the file for the join URL: %w; set BROOD_RENDEZVOUS to a writable folder that "+
			"all ranks can read", err)
	}
	return &filePublisher{tmp: tmp, path: m.file}, nil
}

type filePublisher struct {
	tmp  *os.File
	path string
}

// Publish writes the URL atomically: other ranks see the complete file or none.
func (b *filePublisher) Publish(url string) error {
	_, err := fmt.Fprintln(b.tmp, url)
	if err = errors.Join(err, b.tmp.Sync(), b.tmp.Close()); err == nil {
		err = os.Rename(b.tmp.Name(), b.path)
	}
	if err != nil {
		return fmt.Errorf("publish the join URL for the other ranks: %w", err)
	}
	return nil
}

func (b *filePublisher) Close() {
	b.tmp.Close()
	os.Remove(b.tmp.Name())
	os.Remove(b.path)
}

type tcpPublisher struct {
	secret   string
	listener net.Listener
	wg       sync.WaitGroup
}

// exchangeTimeout bounds a connection between ranks.
const exchangeTimeout = 5 * time.Second

// Publish serves the sealed URL to each connection until Close.
func (b *tcpPublisher) Publish(url string) error {
	sealed, err := launch.Seal(b.secret, url)
	if err != nil {
		return err
	}
	b.wg.Go(func() {
		for {
			conn, err := b.listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				time.Sleep(50 * time.Millisecond) // for example: no file descriptors left
				continue
			}
			_ = conn.SetDeadline(time.Now().Add(exchangeTimeout))
			_, _ = conn.Write(sealed) // a rank that received nothing retries
			conn.Close()
		}
	})
	return nil
}

func (b *tcpPublisher) Close() {
	b.listener.Close()
	b.wg.Wait()
}

// Await waits for the URL at most for the duration patience. It retries ten times a second and fails early if the file
// cannot be trusted.
func (m Rendezvous) Await(ctx context.Context, patience time.Duration) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("patience"))
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		url, err := m.fetch(ctx)
		var bad *os.PathError
		if err == nil || errors.As(err, &bad) && !errors.Is(err, fs.ErrNotExist) {
			return url, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return "", fmt.Errorf("no join URL for %s (%w): see the output of rank 0, and check that all ranks use "+
				"the same folder or port", patience, err)
		}
	}
}

// fetch reads the URL once from the file or from rank 0. In the URL from rank 0 it replaces the host by the address of
// the connection.
func (m Rendezvous) fetch(ctx context.Context) (string, error) {
	if m.secret == "" {
		return readURL(m.file)
	}
	_, port, err := net.SplitHostPort(m.listen)
	if err != nil {
		return "", err
	}
	dialer := net.Dialer{Timeout: exchangeTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(m.leader, port))
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(exchangeTimeout))
	sealed, err := io.ReadAll(io.LimitReader(conn, 1<<12))
	if err != nil {
		return "", err
	}
	url, err := launch.Unseal(m.secret, sealed)
	if err != nil {
		return "", err
	}
	if url == Complete {
		return url, nil
	}
	join, err := identity.ParseJoin(url)
	if err != nil {
		return "", err
	}
	// Rank 0 may have several addresses; this one is known to be reachable.
	host, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	_, udp, err2 := net.SplitHostPort(join.Address)
	join.Address = net.JoinHostPort(host, udp)
	return join.String(), errors.Join(err, err2)
}

// readURL reads the join URL from a file. It rejects a file that is not a regular file of this user without permissions
// for others, since another user could have created it. The error is then a [os.PathError] with the operation trust.
func readURL(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if m := info.Mode(); !m.IsRegular() || !mine(info) || m.Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		// on Windows modes do not express permissions
		return "", &os.PathError{Op: "trust", Path: path,
			Err: fmt.Errorf("other users may access it (mode %s): remove it, and set BROOD_RENDEZVOUS to another "+
				"folder", m)}
	}
	text, err := io.ReadAll(io.LimitReader(f, 1<<12))
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(text)), nil
}
