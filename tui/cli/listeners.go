package cli

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/spf13/pflag"

	"brood/optim/catalog"
	"brood/runtime/archive"
	"brood/runtime/control"
	"brood/runtime/metrics"
	"brood/runtime/session"
	"brood/tui/cli/sshserver"
	"brood/tui/panel"
)

// listenFlags holds the addresses at which a run accepts viewers, in addition to its control socket.
type listenFlags struct{ ssh, authorized, metrics string }

func (f *listenFlags) register(fl *pflag.FlagSet) {
	fl.StringVar(&f.ssh, "ssh", "", "show the workbench by SSH at HOST:PORT; :PORT is this machine only")
	fl.StringVar(&f.authorized, "authorized", "",
		"file of the public keys that are accepted by SSH (default: ~/.ssh/authorized_keys)")
	fl.StringVar(&f.metrics, "metrics", "", "serve Prometheus metrics at http://HOST:PORT/metrics; "+
		":PORT is this machine only")
}

// listeners serves viewers by SSH and Prometheus metrics after serve. Each is a client of the control socket, like
// every viewer.
type listeners struct {
	ssh     *sshserver.Server
	metrics *metrics.Server
	scrape  *control.Client
	wg      sync.WaitGroup
}

// listen binds the addresses. Call it before the run begins, so that the run does not begin if a listener cannot
// open.
func (f *listenFlags) listen(note func(string)) (d *listeners, err error) {
	d = &listeners{}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	if f.ssh != "" {
		cfg := sshserver.Config{Address: f.ssh, Authorized: f.authorized, Note: note}
		if cfg.HostKey, err = session.State("ssh_host_key"); err != nil {
			return d, err
		}
		if cfg.Authorized == "" {
			home, err := os.UserHomeDir()
			if err != nil {
				return d, fmt.Errorf("%w; name the file of accepted public keys with --authorized FILE", err)
			}
			cfg.Authorized = filepath.Join(home, ".ssh", "authorized_keys")
		}
		if d.ssh, err = sshserver.Listen(cfg); err != nil {
			return d, err
		}
	}
	if f.metrics != "" {
		d.metrics, err = metrics.Listen("--metrics", f.metrics)
	}
	return d, err
}

// serve accepts clients for a running session. It returns at once.
func (d *listeners) serve(dir string) {
	name := filepath.Base(dir)
	if d.ssh != nil {
		d.wg.Go(func() {
			d.ssh.Serve(func(v sshserver.Visitor) (panel.Options, error) { return workbenchFor(dir, v) })
		})
	}
	if d.metrics != nil {
		if client, err := control.Dial(dir, "", false); err == nil { // an error means that the run is over
			d.scrape = client
			d.metrics.Attach(name, client)
		}
	}
}

// workbenchFor returns the workbench options of an SSH client, on its own connection to the run.
func workbenchFor(dir string, v sshserver.Visitor) (panel.Options, error) {
	client, err := control.Dial(dir, v.Name, false)
	if err != nil {
		return panel.Options{}, fmt.Errorf("the run does not answer: %w", err)
	}
	opt := panel.Options{
		Source: client, Title: archive.ShortName(filepath.Base(dir)), Resume: resumeLine(dir), By: v.Name,
		Algorithms: catalog.All(),
		Close:      func() error { client.Close(); return nil },
	}
	if v.Command {
		opt.Commander = client
	} else {
		client.SetReadOnly()
	}
	return opt, nil
}

func (d *listeners) announce(out printer, s streams) {
	show := func(event, text string) {
		if j, ok := out.(*jsonPrinter); ok {
			j.put(map[string]any{"event": event, "address": text})
		} else if event == "ssh" {
			host, port, _ := net.SplitHostPort(text) // a bound address is valid
			fmt.Fprintf(s.out, "ssh: ssh -t -p %s %s\n", port, host)
		} else {
			fmt.Fprintf(s.out, "metrics: http://%s/metrics\n", text)
		}
	}
	if d.ssh != nil {
		show("ssh", d.ssh.Address().String())
	}
	if d.metrics != nil {
		show("metrics", d.metrics.Address().String())
	}
}

// part sets the message that SSH clients see when the listeners close.
func (d *listeners) part(why string) {
	if d.ssh != nil {
		d.ssh.Part(why)
	}
}

// Close closes the listeners and waits for their goroutines.
func (d *listeners) Close() (err error) {
	if d.ssh != nil {
		err = d.ssh.Close()
	}
	if d.metrics != nil {
		err = errors.Join(err, d.metrics.Close())
	}
	if d.scrape != nil {
		d.scrape.Close()
	}
	d.wg.Wait()
	return err
}
