package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"brood/runtime/launch"
	"brood/runtime/option"
	"brood/transport/wire"
)

// exitGrace is how long workers may take to exit after the run has ended.
const exitGrace = 10 * time.Second

// remote serves the run on this machine and starts one worker by ssh for each slot of the hosts once the run accepts
// workers. It fails when fewer workers than --wait are left before the run has begun. After that, --on-loss applies to
// lost workers.
func (l *launcher) remote(c *cobra.Command, args []string, hosts []launch.Host) error {
	ssh := launch.SSH{Program: strings.Fields(l.rsh), Brood: l.brood}
	if len(ssh.Program) == 0 || l.brood == "" {
		return usage("--rsh and --brood name programs, and may not be empty")
	}
	if _, err := exec.LookPath(ssh.Program[0]); err != nil {
		return fmt.Errorf("%s was not found (%w): install an ssh client, or name it with --rsh", ssh.Program[0], err)
	}
	ctx, cancel := context.WithCancelCause(c.Context())
	defer cancel(nil)
	workerArgs := func(slot int) []string {
		args := []string{"worker", "-"}
		for _, x := range hosting {
			f := l.serve.Flags().Lookup(x.Name)
			if !f.Changed {
				continue
			}
			text := f.Value.String()
			if x == option.Device {
				text = launch.Place{Local: slot}.Device(text, func(string) string { return "" })
			}
			args = append(args, "--"+x.Name, text)
		}
		return args
	}
	workers := &sshWorkers{ssh: ssh, workerArgs: workerArgs, to: l.s.err, alive: launch.Slots(hosts), failed: cancel}
	defer func() { workers.end(ctx.Err() == nil) }()
	return l.coordinate(ctx, args, workers.alive, func(url string) {
		workers.need, _ = l.serve.Flags().GetInt(option.Wait.Name) // coordinate has read it
		for _, h := range hosts {
			for slot := range h.Slots {
				workers.start(h, slot, url)
			}
		}
	})
}

// sshWorkers holds the workers on other machines. Each has its own ssh process on this machine.
type sshWorkers struct {
	ssh        launch.SSH
	workerArgs func(slot int) []string // returns the command line of the worker in a slot of a host
	need       int                     // workers that must be connected at the same time for the run to begin
	failed     func(error)             // called with the reason if the run can never begin
	wg         sync.WaitGroup

	mu       sync.Mutex
	cmds     []*exec.Cmd // processes that have not ended
	to       io.Writer   // output of the workers, whole lines
	alive    int         // workers that have not failed
	joined   int         // workers of alive that have joined
	begun    bool
	stopping bool // exits of workers are expected
}

func (d *sshWorkers) start(h launch.Host, slot int, url string) {
	argv := d.ssh.Command(h, d.workerArgs(slot)...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.SysProcAttr = detached() // Ctrl+C goes to the coordinator, which stops the workers
	cmd.WaitDelay = time.Second  // children of ssh may keep its output open after it has exited
	cmd.Stdin = strings.NewReader(url + "\n")
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	if err := cmd.Start(); err != nil {
		d.failed(fmt.Errorf("start %s: %w", argv[0], err))
		return
	}
	d.mu.Lock()
	d.cmds = append(d.cmds, cmd)
	d.mu.Unlock()
	prefix := h.String()
	if h.Slots > 1 {
		prefix += fmt.Sprintf("#%d", slot)
	}
	joined, last := false, "no output"
	read := make(chan struct{})
	d.wg.Go(func() {
		defer close(read)
		eachLine(out, func(line string) {
			if line = wire.CleanText(line); line != "" {
				last = line
				joined = d.handleLine(prefix, line) || joined
			}
		})
	})
	d.wg.Go(func() {
		err := cmd.Wait()
		d.mu.Lock()
		d.cmds = slices.DeleteFunc(d.cmds, func(c *exec.Cmd) bool { return c == cmd }) // the OS may reuse its process id
		d.mu.Unlock()
		in.Close()
		<-read
		if err != nil {
			d.lost(joined, d.ssh.Explain(h, cmd.ProcessState.ExitCode(), strings.TrimPrefix(last, "brood: ")))
		}
	})
}

// eachLine calls f with each line of a stream, without its end, until the stream ends or fails.
func eachLine(from io.Reader, f func(line string)) {
	for text := bufio.NewReader(from); ; {
		line, err := text.ReadString('\n')
		if line = strings.TrimRight(line, "\r\n"); line != "" {
			f(line)
		}
		if err != nil {
			return
		}
	}
}

// handleLine prints an output line of a worker, and reports whether the line says that the worker has joined.
func (d *sshWorkers) handleLine(who, line string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	fmt.Fprintf(d.to, "%s: %s\n", who, line)
	if !strings.HasPrefix(line, joinedAs) {
		return false
	}
	d.joined++
	d.begun = d.begun || d.joined >= d.need
	return true
}

// lost handles the failed exit of a worker. Before the run has begun, it fails the launch if too few workers are left.
func (d *sshWorkers) lost(joined bool, why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.alive--
	if joined {
		d.joined--
	}
	switch {
	case d.stopping:
	case !d.begun && d.alive < d.need:
		d.stopping = true
		d.failed(why)
	default:
		fmt.Fprintf(d.to, "brood: %v; the run continues without it\n", why)
	}
}

// joinedAs is the prefix of the line that a worker prints when it has joined the run.
const joinedAs = "brood: joined as worker"

// end waits for the workers to exit, then sends SIGTERM, and after another exitGrace SIGKILL. If leaving is true, the
// workers know that the run is over and get exitGrace before SIGTERM.
func (d *sshWorkers) end(leaving bool) {
	d.mu.Lock()
	d.stopping = true
	d.mu.Unlock()
	done := make(chan struct{})
	go func() { d.wg.Wait(); close(done) }()
	wait := exitGrace
	if !leaving {
		wait = 0
	}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		select {
		case <-done:
			return
		case <-time.After(wait):
			wait = exitGrace
		}
		d.mu.Lock()
		for _, cmd := range d.cmds {
			_ = signalAll(cmd.Process, sig) // the process may have exited
		}
		d.mu.Unlock()
	}
	<-done
}
