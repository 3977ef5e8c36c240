package tui

import (
	"context"
	"errors"
	"os"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// Run shows the workbench until the person leaves or the context ends; the run that it shows goes on either way. The
// error is of the terminal: a lost source is shown, not returned.
func Run(ctx context.Context, opt Options) (err error) {
	if opt.Source == nil {
		return errors.New("tui: a workbench needs a source: attach to a run or open a recording")
	}
	env := opt.Env
	if env == nil {
		env = os.Environ()
	}
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, "NO_COLOR="); ok && v != "" {
			opt.NoColor = true
		}
	}
	if opt.NoColor {
		env = append(env[:len(env):len(env)], "NO_COLOR=1")
	}
	ctx, cancel := context.WithCancel(ctx)
	m := newModel(ctx, opt)
	defer func() {
		cancel()
		m.jobs.end()
		err = errors.Join(err, m.closed())
	}()
	options := []tea.ProgramOption{tea.WithContext(ctx), tea.WithEnvironment(env), tea.WithFPS(30)}
	if opt.In != nil {
		options = append(options, tea.WithInput(opt.In))
	}
	if opt.Out != nil {
		options = append(options, tea.WithOutput(opt.Out))
	}
	if opt.Width > 0 && opt.Height > 0 {
		options = append(options, tea.WithWindowSize(opt.Width, opt.Height))
	}
	_, err = tea.NewProgram(m, options...).Run()
	if errors.Is(err, tea.ErrInterrupted) || ctx.Err() != nil && errors.Is(err, tea.ErrProgramKilled) {
		return nil
	}
	return err
}
