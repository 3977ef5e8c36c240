package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/models/usererr"
	"brood/tui/panel"
	"brood/tui/panel/runs"
	"brood/tui/picture"
)

// ScreenNames returns the screens that [panel.Options.Screen] may name, in the order of their digits, and after them
// the pages that key w shows in their place.
func ScreenNames() (names []string) {
	var instead []string
	for _, s := range newModel(context.Background(), panel.Options{Library: noLibrary{}}).screens() {
		names = append(names, s.Name)
		if s.Instead != "" {
			instead = append(instead, s.Instead)
		}
	}
	return append(names, instead...)
}

// noLibrary makes newModel register the panels of the Runs screen. Its methods must not be called.
type noLibrary struct{ panel.Library }

// FindScreen returns the name of a screen as in ScreenNames, ignoring case.
func FindScreen(name string) (string, error) {
	for _, s := range ScreenNames() {
		if strings.EqualFold(s, name) {
			return s, nil
		}
	}
	return "", usererr.Errorf("there is no screen %q%s: choose %s", name,
		strings.ToLower(usererr.Suggest(name, ScreenNames())), strings.ToLower(strings.Join(ScreenNames(), ", ")))
}

// Frames writes n frames of the workbench, `every` apart, as they would be drawn at opt.Width x opt.Height: for scripts
// and pages. It uses no terminal. For a recording the frame shows the state after round opt.At, 0 for its end. A frame
// consists of lines; an empty line separates it from the next.
func Frames(ctx context.Context, opt panel.Options, n int, every time.Duration, out io.Writer) error {
	return eachFrame(ctx, opt, n, every, func(m *model, i int) error {
		text := m.theme.String(m.paint()) + "\n"
		if i > 0 {
			text = "\n" + text
		}
		_, err := io.WriteString(out, text)
		return err
	})
}

// MaxRuns is the largest number of runs that a picture of the screen Runs overlays.
const MaxRuns = runs.MaxMarks

// Picture writes one frame in a form of package picture, with a light background if opt.Light is set. Without a source
// it is the screen Runs with the runs of the library overlaid, at most MaxRuns.
func Picture(ctx context.Context, opt panel.Options, form string, out io.Writer) error {
	if opt.Source == nil {
		return pictureRuns(ctx, opt, form, out)
	}
	return eachFrame(ctx, opt, 1, 0, func(m *model, _ int) error {
		return picture.Write(out, m.paint(), form, !opt.Light)
	})
}

func pictureRuns(ctx context.Context, opt panel.Options, form string, out io.Writer) error {
	all, err := opt.Library.Scan(ctx, "")
	if err != nil {
		return err
	}
	m := newModel(ctx, opt)
	defer m.Jobs.Close()
	err = m.runNow(m.startReading())
	if len(all) > 1 {
		for range min(len(all), MaxRuns) {
			err = errors.Join(err, m.runNow(m.key("space", " ")))
		}
	}
	m.key("home", "")
	if err = errors.Join(err, m.runNow(m.pollPanels())); err != nil {
		return err
	}
	return picture.Write(out, m.paint(), form, !opt.Light)
}

// eachFrame opens a workbench, reads the run n times, `every` apart, and calls show after each read.
func eachFrame(ctx context.Context, opt panel.Options, n int, every time.Duration,
	show func(m *model, i int) error) (err error) {
	if opt.Source == nil {
		return errors.New("tui: frames need a source: attach to a run or open a recording")
	}
	ctx, cancel := context.WithCancel(ctx)
	m := newModel(ctx, opt)
	defer func() {
		cancel()
		m.Jobs.Close()
		err = errors.Join(err, m.close())
	}()
	if opt.Screen != "" && !m.hasScreen(opt.Screen) {
		return fmt.Errorf("the screen %s shows several runs, and one is given: choose another screen", opt.Screen)
	}
	next := m.seek(math.MaxUint64)
	if m.Replay != nil {
		m.Replay.Pause(true)
		if opt.At > 0 {
			next = m.toRound(opt.At)
		}
		next = tea.Batch(m.scan(), next)
	}
	for i := range n {
		if i > 0 {
			select {
			case <-time.After(every):
			case <-ctx.Done():
				return ctx.Err()
			}
			next = m.seek(math.MaxUint64)
		}
		if err := m.runNow(next); err != nil {
			return err
		}
		if done := m.Live.Progress.Rounds; m.Replay != nil && opt.At > done {
			return fmt.Errorf("round %d is after the end of the session at round %d", opt.At, done)
		}
		if err := m.runNow(m.pollPanels()); err != nil {
			return err
		}
		if err := show(m, i); err != nil {
			return err
		}
	}
	return nil
}

// runNow runs a command and applies its result, except that it does not continue to read records: a frame shows a
// snapshot.
func (m *model) runNow(cmd tea.Cmd) error {
	if cmd == nil {
		return nil
	}
	switch msg := cmd().(type) {
	case tea.BatchMsg:
		for _, c := range msg {
			if err := m.runNow(c); err != nil {
				return err
			}
		}
	case snapshotMsg:
		m.Update(msg)
		return msg.err
	case scannedMsg:
		return msg.err
	case seekMsg:
		if msg.err != nil {
			return msg.err
		}
		_, next := m.Update(msg)
		return m.runNow(next)
	case panel.Reply:
		_, next := m.Update(msg)
		return m.runNow(next)
	}
	return nil
}
