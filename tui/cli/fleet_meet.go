package cli

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
	goruntime "runtime"
	"strings"
	"sync"
	"time"

	"brood/runtime/launch"
	"brood/transport/identity"
)

// meeting is where copies of one command learn the join URL from the first: a file in a folder that all see and only
// their owner reads, or, with a secret that all have, a TCP port of the first, which gives the sealed URL to whoever
// asks.
type meeting struct {
	file   string // "" with a secret
	secret string
	leader string // host of the first
	listen string // its UDP address; the TCP port has the same number
}

func newMeeting(p launch.Place, listen string, env func(string) string) (m meeting, err error) {
	m = meeting{secret: env("BROOD_SECRET"), leader: p.Leader, listen: listen}
	folder := cmp.Or(env("BROOD_RENDEZVOUS"), p.Folder)
	switch {
	case m.secret != "":
		if _, err := launch.Seal(m.secret, ""); err != nil {
			return m, fmt.Errorf("BROOD_SECRET: %w", err)
		}
		if m.leader == "" {
			return m, errors.New("BROOD_SECRET is of no use in a job array, whose tasks do not know where the first one runs: unset it, and set BROOD_RENDEZVOUS to a folder that all of them see")
		}
		if _, port, err := net.SplitHostPort(listen); err != nil || port == "0" {
			return m, usage("--listen %s: with BROOD_SECRET give HOST:PORT or :PORT, since all must know the port beforehand",
				listen)
		}
	case folder == "":
		return m, errors.New("the ranks share no secret: set BROOD_RENDEZVOUS to a folder that all of them see, or BROOD_SECRET to the same text, made by `openssl rand -hex 32`, for all")
	default:
		m.file = filepath.Join(folder, "brood-"+p.Run+".join")
	}
	return m, nil
}

// board is where the first copy leaves the URL for the others, until it is closed.
type board interface {
	post(url string) error
	close()
}

func (m meeting) board() (board, error) {
	if m.secret != "" {
		l, err := net.Listen("tcp", m.listen)
		if err != nil {
			return nil, fmt.Errorf("listen for the other ranks on TCP %s: %w", m.listen, err)
		}
		return &portBoard{secret: m.secret, listener: l}, nil
	}
	// Who waits must not find what a run of the same name has left.
	if err := os.Remove(m.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("meet the other ranks: %w", err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(m.file), ".brood-*.join") // mode 0600
	if err != nil {
		return nil, fmt.Errorf("meet the other ranks: %w: set BROOD_RENDEZVOUS to a folder that all of them see and you may write", err)
	}
	return &fileBoard{tmp: tmp, path: m.file}, nil
}

type fileBoard struct {
	tmp  *os.File
	path string
}

// post writes the URL whole or not at all.
func (b *fileBoard) post(url string) error {
	_, err := fmt.Fprintln(b.tmp, url)
	if err = errors.Join(err, b.tmp.Sync(), b.tmp.Close()); err == nil {
		err = os.Rename(b.tmp.Name(), b.path)
	}
	if err != nil {
		return fmt.Errorf("leave the join URL for the other ranks: %w", err)
	}
	return nil
}

func (b *fileBoard) close() {
	b.tmp.Close()
	os.Remove(b.tmp.Name())
	os.Remove(b.path)
}

type portBoard struct {
	secret   string
	listener net.Listener
	wg       sync.WaitGroup
}

const askWithin = 5 * time.Second

func (b *portBoard) post(url string) error {
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
				time.Sleep(50 * time.Millisecond) // no descriptors left, say
				continue
			}
			_ = conn.SetDeadline(time.Now().Add(askWithin))
			_, _ = conn.Write(sealed) // who got nothing asks again
			conn.Close()
		}
	})
	return nil
}

func (b *portBoard) close() {
	b.listener.Close()
	b.wg.Wait()
}

// look waits for the URL, as long as patience says.
func (m meeting) look(ctx context.Context, patience time.Duration) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("patience"))
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		url, err := m.once(ctx)
		var bad *os.PathError
		if err == nil || errors.As(err, &bad) && !errors.Is(err, fs.ErrNotExist) {
			return url, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return "", fmt.Errorf("no join URL for %s (%w): see what rank 0 says, and that all see the same folder or port",
				patience, err)
		}
	}
}

func (m meeting) once(ctx context.Context) (string, error) {
	if m.secret == "" {
		return readURL(m.file)
	}
	_, port, err := net.SplitHostPort(m.listen)
	if err != nil {
		return "", err
	}
	dialer := net.Dialer{Timeout: askWithin}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(m.leader, port))
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(askWithin))
	sealed, err := io.ReadAll(io.LimitReader(conn, 1<<12))
	if err != nil {
		return "", err
	}
	url, err := launch.Unseal(m.secret, sealed)
	if err != nil {
		return "", err
	}
	join, err := identity.ParseJoin(url)
	if err != nil {
		return "", err
	}
	// Of all addresses that the first may have, this is one that reaches it.
	host, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	_, udp, err2 := net.SplitHostPort(join.Address)
	join.Address = net.JoinHostPort(host, udp)
	return join.String(), errors.Join(err, err2)
}

// readURL trusts only a file that nobody else can read, and so cannot have put there.
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
	if m := info.Mode(); !m.IsRegular() || !mine(info) || m.Perm()&0o077 != 0 && goruntime.GOOS != "windows" {
		// there, modes say nothing
		return "", &os.PathError{Op: "trust", Path: path,
			Err: fmt.Errorf("it is not a file of yours alone (mode %s): remove it, and choose another folder by BROOD_RENDEZVOUS", m)}
	}
	text, err := io.ReadAll(io.LimitReader(f, 1<<12))
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(text)), nil
}
