package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"brood/models/data"
	"brood/models/data/fetch"
	"brood/tui/textfmt"
)

func getCommand(s streams) *cobra.Command {
	var from string
	var stall time.Duration
	var asJSON *bool
	c := &cobra.Command{
		Use:   "get NAME",
		Short: "Fetch a data set into your cache, or resume an interrupted fetch",
		Args:  exactly("a NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			if stall <= 0 {
				return usage("--stall %v: give a time above 0, such as 30s", stall)
			}
			set, err := fetch.Lookup(args[0])
			if err != nil {
				return err
			}
			if from != "" {
				set.URL = from
			}
			if !*asJSON {
				return getData(c.Context(), s, set, stall)
			}
			if err := getData(c.Context(), streams{out: s.err}, set, stall); err != nil {
				return err
			}
			d, err := data.Load(set.Name)
			if err != nil {
				return err
			}
			return objects(s.out, setObject(d))
		},
	}
	asJSON = jsonFlag(c)
	c.Flags().StringVar(&from, "from", "",
		"URL of a folder with the published files (default: where they are published)")
	c.Flags().DurationVar(&stall, "stall", 30*time.Second, "abandon an attempt when no data arrives for this long")
	return c
}

// getData fetches a set unless a complete copy is present. It holds the lock of the cache directory meanwhile.
func getData(ctx context.Context, s streams, set fetch.Set, stall time.Duration) error {
	dir, err := data.Cache(set.Name)
	if err != nil {
		return err
	}
	unlock, err := fetch.Lock(dir)
	if err != nil {
		return fmt.Errorf("data %s: %w", set.Name, err)
	}
	defer unlock()
	if here, err := present(set.Name, dir); err != nil || here != "" {
		if err == nil {
			fmt.Fprintf(s.out, "%s is already present: %s\n", set.Name, here)
		}
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	until, stopTerm := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stopTerm()
	p := &progress{out: s.out, line: s.terminal}
	fmt.Fprintf(s.out, "%s: %s from %s into %s\n", set.Name, textfmt.Size(set.Bytes()), set.URL, dir)
	err = fetch.Client{Stall: stall, Pause: time.Second / 2, Progress: p.show}.Get(until, set, set.URL, dir)
	p.end()
	switch {
	case err != nil && ctx.Err() != nil:
		return &exitError{code: exitCtrlC, err: err}
	case err != nil && until.Err() != nil:
		return &exitError{code: exitSigterm, err: err}
	case err != nil:
		return err
	}
	d, err := data.Load(set.Name)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%s is ready: %s training, %s validation and %s test samples\n", set.Name,
		textfmt.Grouped(len(d.Train())), textfmt.Grouped(len(d.Validation())), textfmt.Grouped(len(d.Test())))
	return nil
}

// present returns the location of the set if it can be read, or "" if it has to be fetched into dir. A damaged copy
// outside dir is an error, since it would take precedence over the fetched files.
func present(name, dir string) (string, error) {
	k, err := data.Lookup(name)
	if err != nil {
		return "", err
	}
	where, err := k.Where()
	if err != nil {
		return "", nil
	}
	_, err = data.Load(name)
	if inside, e := filepath.Rel(dir, where); err != nil && e == nil && !strings.HasPrefix(inside, "..") {
		return "", nil
	}
	return where, err
}

// progress prints the progress of each file: on one line that is overwritten, or on a new line at each quarter.
type progress struct {
	out  io.Writer
	line bool // overwrite one line, for a terminal
	file string
	mark int64 // last printed step: a percent, or a quarter
}

func (p *progress) show(file string, done, total int64) {
	steps := int64(4)
	if p.line {
		steps = 100
	}
	mark := done * steps / max(1, total)
	if file == p.file && mark == p.mark {
		return
	}
	if file != p.file {
		p.end()
	}
	p.file, p.mark = file, mark
	text := fmt.Sprintf("  %-28s %3d %%  %s of %s", file, 100*done/max(1, total), textfmt.Size(done), textfmt.Size(total))
	if p.line {
		fmt.Fprintf(exact(p.out), "\r%-70s", text)
		return
	}
	fmt.Fprintln(p.out, text)
}

// end ends the line that is overwritten, if any.
func (p *progress) end() {
	if p.line && p.file != "" {
		fmt.Fprintln(p.out)
	}
	p.file = ""
}
