package tui

import (
	"cmp"
	"context"
	"errors"
	"os"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"brood/tui/panel"
)

// Run shows the workbench until the user leaves or ctx ends. The run that it shows continues. The error is that of the
// terminal: a lost source is shown, not returned.
func Run(ctx context.Context, opt panel.Options) error {
	if opt.Source == nil && opt.Library == nil {
		return errors.New("tui: a workbench needs a source or a library: attach to a run or open a recording")
	}
	p, done := Program(ctx, opt)
	_, err := p.Run()
	if errors.Is(err, tea.ErrInterrupted) || ctx.Err() != nil && errors.Is(err, tea.ErrProgramKilled) {
		err = nil
	}
	return errors.Join(err, done())
}

// Program returns the workbench as a Bubble Tea program for the caller to run. done stops its jobs and closes the
// source: call it after the program has ended, or instead of running it.
func Program(ctx context.Context, opt panel.Options) (p *tea.Program, done func() error) {
	env := opt.Env
	if env == nil {
		env = os.Environ()
	}
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, "NO_COLOR="); ok && v != "" {
			opt.NoColor = true
		}
	}
	opt.DetectCharset(env)
	if opt.NoColor {
		env = append(env[:len(env):len(env)], "NO_COLOR=1")
	}
	ctx, cancel := context.WithCancel(ctx)
	if opt.Emulated { // its size cannot be requested
		opt.SetDefaults()
	}
	m := newModel(ctx, opt)
	options := []tea.ProgramOption{tea.WithContext(ctx), tea.WithEnvironment(env), tea.WithFPS(cmp.Or(opt.FPS, 30)),
		tea.WithFilter(panel.ClampWindowSize)}
	if opt.In != nil {
		options = append(options, tea.WithInput(opt.In))
	}
	if opt.Out != nil {
		options = append(options, tea.WithOutput(opt.Out))
	}
	if opt.Emulated {
		options = append(options, tea.WithColorProfile(colorprofile.Env(env)), tea.WithoutSignalHandler())
	}
	if opt.Width > 0 && opt.Height > 0 {
		options = append(options, tea.WithWindowSize(opt.Width, opt.Height))
	}
	p = tea.NewProgram(m, options...)
	return p, func() error {
		cancel()
		m.Jobs.Close()
		return m.close()
	}
}
