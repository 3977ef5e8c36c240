// Package sshserver serves the workbench of one run by SSH. It accepts only authorized public keys, never passwords,
// and listens on the loopback address unless its address names another host. It imports tui, and transport/wire to
// clean names.
//
//	srv, err := sshserver.Listen(sshserver.Config{Address: ":2222", HostKey: path, Authorized: keys})
//	go srv.Serve(open)      // open returns a source for each client
//	err = srv.Close()
//
// The user name "viewer" gives read-only access. All other clients may command too, one at a time, by the writer
// lease.
package sshserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/ssh"
	"charm.land/wish/v2"
	gossh "golang.org/x/crypto/ssh"

	"brood/models/usererr"
	"brood/transport/wire"
	"brood/tui"
	"brood/tui/panel"
)

// Config configures a server.
type Config struct {
	Address string // HOST:PORT; an empty HOST is the loopback address
	HostKey string // file of the server's private key, created if missing
	// Authorized is a file of the accepted public keys, one a line in OpenSSH format. The server reads it again for
	// each client. Lines with options (command=, from=, restrict, ...) are ignored: the server does not implement
	// them.
	Authorized string
	Note       func(text string) // called when a client connects or leaves; must not block; may be nil
}

// Visitor is an authorized client.
type Visitor struct {
	Name    string // COMMENT@FINGERPRINT of the key, with the first 10 characters of the fingerprint
	Command bool   // may send commands
}

// Opener returns the workbench options for a client. The source belongs to that client alone and is closed with it.
type Opener func(Visitor) (panel.Options, error)

// Server is an SSH server. Its methods may be called from any goroutine.
type Server struct {
	cfg    Config
	listen net.Listener
	ssh    *ssh.Server
	open   Opener

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	conns   connections
	screens screens
	parting atomic.Pointer[string] // last line for clients, see Part
}

const (
	handshakeWithin = 10 * time.Second
	partFor         = 2 * time.Second

	lookOnly     = "viewer" // user name of read-only clients
	framesRemote = 10       // frames per second
)

type visitorKey struct{}

// Listen binds the address and reads the keys. It accepts no client before Serve.
func Listen(cfg Config) (*Server, error) {
	if cfg.Note == nil {
		cfg.Note = func(string) {}
	}
	host, port, err := net.SplitHostPort(cfg.Address)
	if err != nil {
		return nil, usererr.Errorf("--ssh %q is no HOST:PORT, such as :2222 (this machine only) or 0.0.0.0:2222", cfg.Address)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	if _, err := keysOf(cfg.Authorized); err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, conns: connections{note: cfg.Note}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if err := os.MkdirAll(filepath.Dir(cfg.HostKey), 0o700); err != nil {
		return nil, fmt.Errorf("the SSH server's key: %w", err)
	}
	if info, err := os.Stat(cfg.HostKey); err == nil && info.Mode().Perm()&0o077 != 0 && goruntime.GOOS != "windows" {
		return nil, fmt.Errorf("the SSH server's key %s may be read by others (mode %04o): chmod 600 %s, "+
			"or remove it if others had access", cfg.HostKey, info.Mode().Perm(), cfg.HostKey)
	}
	s.ssh, err = wish.NewServer(wish.WithHostKeyPath(cfg.HostKey), ssh.EmulatePty(), // an allocated one loses resizes
		wish.WithPublicKeyAuth(s.authorized), wish.WithMiddleware(s.workbench))
	if err != nil {
		return nil, fmt.Errorf("the SSH server's key %s: %w", cfg.HostKey, err)
	}
	s.ssh.HandshakeTimeout = handshakeWithin
	s.ssh.ConnCallback, s.ssh.ServerConfigCallback = s.conns.accept, s.conns.config
	s.ssh.ChannelHandlers = map[string]ssh.ChannelHandler{"session": s.screens.handle}
	if s.listen, err = net.Listen("tcp", net.JoinHostPort(host, port)); err != nil {
		return nil, fmt.Errorf("listen for SSH on %s: %w: name an address of this machine and a port that no other program "+
			"has", cfg.Address, err)
	}
	return s, nil
}

// Address is where the server listens.
func (s *Server) Address() net.Addr { return s.listen.Addr() }

// Serve accepts clients until Close. It calls open for each of them.
func (s *Server) Serve(open Opener) {
	s.open = open
	_ = s.ssh.Serve(s.listen) // returns after Close
}

// Part makes Close print why as the last line of every client's terminal, after its screen is gone.
func (s *Server) Part(why string) { s.parting.Store(&why) }

// Close ends all client sessions and returns when the last is over. It cuts the connections that remain after
// partFor.
func (s *Server) Close() error {
	s.cancel()
	err := unlessClosed(s.listen.Close())
	s.conns.close()
	left := make(chan struct{})
	go func() { s.wg.Wait(); close(left) }()
	select {
	case <-left:
	case <-time.After(partFor):
	}
	err = errors.Join(err, unlessClosed(s.ssh.Close())) // also closes the listener if Serve still has it
	s.wg.Wait()
	s.screens.wg.Wait()
	return err
}

// unlessClosed returns err, or nil if err says that something is closed already.
func unlessClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// authorized reports whether the file contains the key, and stores the client in the context.
func (s *Server) authorized(ctx ssh.Context, key ssh.PublicKey) bool {
	keys, err := keysOf(s.cfg.Authorized)
	if err != nil {
		s.cfg.Note(err.Error())
		return false
	}
	for _, k := range keys {
		if ssh.KeysEqual(k.key, key) {
			ctx.SetValue(visitorKey{}, Visitor{k.name, ctx.User() != lookOnly})
			ctx.SetValue(keyOf{}, string(key.Marshal()))
			return true
		}
	}
	return false
}

type authorizedKey struct {
	key  ssh.PublicKey
	name string
}

// keysOf reads a file of public keys and skips those with options. It fails if no key remains, since the server would
// then accept no client.
func keysOf(path string) (out []authorizedKey, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("SSH admits no client without a key: put public keys into %s, or name another file with "+
			"--authorized (%w)", path, err)
	}
	for len(bytes.TrimSpace(text)) > 0 {
		key, comment, options, rest, err := ssh.ParseAuthorizedKey(text)
		if err != nil {
			break // no further key
		}
		if text = rest; len(options) > 0 {
			continue
		}
		name := strings.TrimSpace(comment) + "@" + strings.TrimPrefix(gossh.FingerprintSHA256(key), "SHA256:")[:10]
		out = append(out, authorizedKey{key, wire.CleanName(name)})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s holds no public key without options: SSH would admit no client; "+
			"copy the line of an id_ed25519.pub into it, or name another file with --authorized", path)
	}
	return out, nil
}

// workbench is the handler of a client session: it runs a workbench until the client or the server ends it.
func (s *Server) workbench(ssh.Handler) ssh.Handler {
	return func(sess ssh.Session) {
		s.wg.Add(1)
		defer s.wg.Done()
		v, _ := sess.Context().Value(visitorKey{}).(Visitor)
		pty, changes, ok := sess.Pty()
		if changes != nil {
			defer s.wg.Go(func() { drain(changes) })
		}
		switch {
		case len(sess.Command()) > 0:
			wish.Fatalln(sess, "brood: no commands by SSH: connect with a terminal and without a command")
			return
		case !ok:
			wish.Fatalln(sess, "brood: the workbench needs a terminal: use ssh -t")
			return
		case s.ctx.Err() != nil:
			return
		}
		opt, err := s.open(v)
		if err != nil {
			wish.Fatalln(sess, "brood: "+err.Error())
			return
		}
		opt.In, opt.Out, opt.Env, opt.FPS = sess, sess, append(sess.Environ(), "TERM="+pty.Term[:min(len(pty.Term), 64)]),
			framesRemote
		opt.Width, opt.Height = pty.Window.Width, pty.Window.Height // an unknown size, 0 x 0, becomes 80 x 24
		opt.Emulated, opt.NoFiles = true, true
		s.cfg.Note(fmt.Sprintf("%s looks in by SSH from %s", v.Name, sess.RemoteAddr()))
		defer s.cfg.Note(v.Name + " is gone")
		ctx, cancel := context.WithCancel(sess.Context())
		defer cancel()
		defer context.AfterFunc(s.ctx, cancel)()
		program, done := tui.Program(ctx, opt)
		s.wg.Go(func() { resize(ctx, program, changes) })
		_, err = program.Run()
		cancel()
		if errors.Is(err, tea.ErrProgramKilled) { // the client disconnected or the server closes
			err = nil
		}
		if err := errors.Join(err, done()); err != nil {
			s.cfg.Note(fmt.Sprintf("%s: %v", v.Name, err))
		}
		if why := s.parting.Load(); why != nil && s.ctx.Err() != nil {
			wish.Println(sess, "brood: "+*why)
		}
	}
}

// drain discards size changes once the workbench has ended. It returns when the requests of the session end, which
// would block without it.
func drain(changes <-chan ssh.Window) {
	for range changes {
	}
}

// resize forwards size changes of the terminal to the workbench. It ignores an unknown size, 0 x 0.
func resize(ctx context.Context, p *tea.Program, changes <-chan ssh.Window) {
	for {
		select {
		case w, ok := <-changes:
			if !ok {
				return
			}
			if w.Width > 0 && w.Height > 0 {
				p.Send(tea.WindowSizeMsg{Width: w.Width, Height: w.Height})
			}
		case <-ctx.Done():
			return
		}
	}
}
