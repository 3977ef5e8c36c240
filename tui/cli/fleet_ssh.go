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

// farewell is how long workers may take to end after the run has.
const farewell = 10 * time.Second

// remote serves here, and starts a worker by ssh for each slot of the hosts as soon as the run lets them in. The launch
// ends when so many have failed that the run can never begin; once it has, it goes on without them as --on-loss says.
func (l *launcher) remote(c *cobra.Command, args []string, hosts []launch.Host) error {
	ssh := launch.SSH{Program: strings.Fields(l.rsh), Brood: l.brood}
	if len(ssh.Program) == 0 || l.brood == "" {
		return usage("--rsh and --brood name programs, and may not be empty")
	}
	if _, err := exec.LookPath(ssh.Program[0]); err != nil {
		return fmt.Errorf("%s is not there (%w): install an ssh client, or name it with --rsh", ssh.Program[0], err)
	}
	ctx, cancel := context.WithCancelCause(c.Context())
	defer cancel(nil)
	what := func(slot int) []string {
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
	crew := &distant{ssh: ssh, what: what, to: l.s.err, hope: launch.Slots(hosts), failed: cancel}
	defer func() { crew.end(ctx.Err() == nil) }()
	return l.coordinate(ctx, args, crew.hope, func(url string) {
		crew.need, _ = l.serve.Flags().GetInt(option.Wait.Name) // coordinate has read it
		for _, h := range hosts {
			for slot := range h.Slots {
				crew.start(h, slot, url)
			}
		}
	})
}

// distant are the workers on other machines, each with an ssh of this one.
type distant struct {
	ssh    launch.SSH
	what   func(slot int) []string // the command line of a worker, for each slot of a host
	need   int                     // that must be there at once for the run to begin
	failed func(error)             // told why it never will
	wg     sync.WaitGroup

	mu    sync.Mutex
	all   []*exec.Cmd // that have not ended
	to    io.Writer   // what workers say, a line at a time
	hope  int         // workers that have not failed
	here  int         // of these, joined
	begun bool
	over  bool // whoever ends now is not missed
}

func (d *distant) start(h launch.Host, slot int, url string) {
	argv := d.ssh.Command(h, d.what(slot)...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.SysProcAttr = detached() // a Ctrl+C is for the coordinator, which then tells the workers
	cmd.WaitDelay = time.Second  // what the program has started may hold its output open when it is gone itself
	cmd.Stdin = strings.NewReader(url + "\n")
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	if err := cmd.Start(); err != nil {
		d.failed(fmt.Errorf("start %s: %w", argv[0], err))
		return
	}
	d.mu.Lock()
	d.all = append(d.all, cmd)
	d.mu.Unlock()
	prefix := h.String()
	if h.Slots > 1 {
		prefix += fmt.Sprintf("#%d", slot)
	}
	joined, last := false, "it said nothing"
	read := make(chan struct{})
	d.wg.Go(func() {
		defer close(read)
		text := bufio.NewReader(out)
		for {
			line, err := text.ReadString('\n')
			if line = wire.CleanText(strings.TrimRight(line, "\r\n")); line != "" {
				last = line
				joined = d.heard(prefix, line) || joined
			}
			if err != nil {
				return
			}
		}
	})
	d.wg.Go(func() {
		err := cmd.Wait()
		d.mu.Lock()
		d.all = slices.DeleteFunc(d.all, func(c *exec.Cmd) bool { return c == cmd }) // its number may be another's now
		d.mu.Unlock()
		in.Close()
		<-read
		if err != nil {
			d.lost(joined, d.ssh.Explain(h, cmd.ProcessState.ExitCode(), strings.TrimPrefix(last, "brood: ")))
		}
	})
}

// heard passes a line on, and says whether its worker has joined by it.
func (d *distant) heard(who, line string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	fmt.Fprintf(d.to, "%s: %s\n", who, line)
	if !strings.HasPrefix(line, joinedAs) {
		return false
	}
	d.here++
	d.begun = d.begun || d.here >= d.need
	return true
}

func (d *distant) lost(joined bool, why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hope--
	if joined {
		d.here--
	}
	switch {
	case d.over:
	case !d.begun && d.hope < d.need:
		d.over = true
		d.failed(why)
	default:
		fmt.Fprintf(d.to, "brood: %v; the run goes on without it\n", why)
	}
}

// joinedAs begins what a worker says when it has become part of the run.
const joinedAs = "brood: joined as worker"

// end waits until the workers have ended, for a while if they have been told to, and then makes them.
func (d *distant) end(told bool) {
	d.mu.Lock()
	d.over = true
	d.mu.Unlock()
	done := make(chan struct{})
	go func() { d.wg.Wait(); close(done) }()
	wait := farewell
	if !told {
		wait = 0
	}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		select {
		case <-done:
			return
		case <-time.After(wait):
			wait = farewell
		}
		d.mu.Lock()
		for _, cmd := range d.all {
			_ = signalAll(cmd.Process, sig) // it may end just now
		}
		d.mu.Unlock()
	}
	<-done
}
