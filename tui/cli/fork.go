package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"brood/runtime/door"
	"brood/runtime/session"
)

// forkApart begins a branch in a process of its own and returns when it trains.
func (f *runFlags) forkApart(c *cobra.Command, parent string, at uint64, s streams) error {
	if f.json {
		return usage("--json and --background exclude each other: a run in the background prints nothing")
	}
	from, err := resolve(parent)
	if err != nil {
		return err
	}
	home, err := session.Home()
	if err != nil {
		return err
	}
	keep := existing(cmp.Or(f.session, home))
	dir := f.session
	if dir == "" {
		dir, err = session.NewDir("fork", time.Now())
	} else {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return err
	}
	if err := f.vacant(dir); err != nil {
		return err
	}
	client, err := forkHost(c.Context(), from, at, dir, keep, passOn(c, "at", "session"), func(uint64) {})
	if err != nil {
		return err
	}
	client.Close()
	fmt.Fprintf(s.out, "training in the background, session %s\nlook at it: brood attach %s\nstop it:    brood stop %s\n", dir, filepath.Base(dir), filepath.Base(dir))
	return nil
}

// forkHost starts a branch of the session in from as a process of its own, into dir, and waits until it answers. told hears
// of the rounds that are executed again until then. When that fails or ctx ends, the process is ended and what it made,
// below keep, is taken back.
func forkHost(ctx context.Context, from string, at uint64, dir, keep string, more []string, told func(uint64)) (*door.Client, error) {
	args := append([]string{"fork", from, "--at", strconv.FormatUint(at, 10), "--host", "--session", dir}, more...)
	made, _ := os.ReadDir(dir)
	child, logPath, err := startApart(dir, args)
	if err != nil {
		return nil, err
	}
	gone, ended := make(chan error, 1), make(chan struct{})
	go func() { gone <- child.Wait(); close(ended) }()
	client, err := awaitDoor(ctx, dir, gone, logPath, told)
	if err == nil {
		return client, nil
	}
	_ = child.Process.Kill() // it may have ended by itself
	<-ended
	os.Remove(logPath)
	if len(made) == 0 { // all of it was made here
		os.RemoveAll(dir)
		vanish(filepath.Dir(dir), keep)
	}
	return nil, err
}
