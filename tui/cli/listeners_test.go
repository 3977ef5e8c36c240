package cli

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"brood/runtime/control"
	"brood/runtime/session"
	"brood/runtime/testutil"
	"brood/runtime/view"
	"brood/tui/cli/sshserver"
	"brood/tui/panel/alerts"
)

// TestVisitorsBySSH: the log of the host process is available only to clients that may send commands.
func TestVisitorsBySSH(t *testing.T) {
	s, err := session.Create(filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := session.AppendProcessLog(s.Dir(), "worker 1 joined", time.Now()); err != nil {
		t.Fatal(err)
	}
	socket, err := session.SocketPath(s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Skip("no Unix sockets here: " + err.Error())
	}
	srv := control.NewServer(s.Dir(), view.New(), nil)
	srv.Serve(l)
	defer srv.Close()
	for _, may := range []bool{true, false} {
		opt, err := workbenchFor(s.Dir(), sshserver.Visitor{Name: "ada@key", Command: may})
		if err != nil {
			t.Fatal(err)
		}
		lines, err := opt.Source.(alerts.Teller).ProcessLog(testutil.Context(t))
		if may != (len(lines) == 1 && err == nil) || may != (opt.Commander != nil) ||
			!may && !strings.Contains(err.Error(), "may look only") {
			t.Errorf("may command %v: receipt %v, %v", may, lines, err)
		}
		if err := opt.Close(); err != nil {
			t.Error(err)
		}
	}
}
