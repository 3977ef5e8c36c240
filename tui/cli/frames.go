package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"brood/optim/catalog"
	"brood/tui"
	"brood/tui/panel"
)

// frameFlags select the first screen of a session, or print frames of it as text without a terminal.
type frameFlags struct {
	screen, size string
	frames       int
}

// frameEvery is the time between the frames of a live run.
const frameEvery = time.Second

func (f *frameFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.screen, "screen", "", "screen to begin with, such as fleet")
	c.Flags().IntVar(&f.frames, "frames", 0, "print this many frames of the screen as text instead, a second apart")
	c.Flags().StringVar(&f.size, "size", "80x24", "with --frames: columns and rows of a frame")
}

// apply validates the flags and sets the options of a workbench.
func (f *frameFlags) apply(c *cobra.Command, o *panel.Options) (err error) {
	if f.screen != "" {
		if o.Screen, err = tui.FindScreen(f.screen); err != nil {
			return err
		}
	}
	if f.frames < 0 {
		return usage("--frames %d: give 1 or more", f.frames)
	}
	if f.frames == 0 {
		if c.Flags().Changed("size") {
			return usage("--size applies only with --frames")
		}
		return nil
	}
	if o.Width, o.Height, err = parseSize(f.size); err != nil {
		return err
	}
	o.NoColor = true
	return nil
}

// parseSize parses columns and rows, such as 80x24.
func parseSize(text string) (w, h int, err error) {
	var rest string
	if n, _ := fmt.Sscanf(text, "%dx%d%s", &w, &h, &rest); n != 2 || w < 20 || h < 5 || w > 400 || h > 120 {
		return 0, 0, usage("--size %q: write columns and rows such as 80x24, from 20x5 to 400x120", text)
	}
	return w, h, nil
}

func (f *frameFlags) print(ctx context.Context, o panel.Opened, opt panel.Options, s streams) error {
	opt.Source, opt.Session, opt.Resume, opt.Algorithms, opt.By = o.Source, o.Session, o.Resume, catalog.All(),
		clientName()
	lib, err := newSessionLibrary(o)
	if err != nil {
		return err
	}
	defer lib.end()
	opt.Library = lib
	return tui.Frames(ctx, opt, f.frames, frameEvery, s.out)
}
