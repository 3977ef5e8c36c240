package panel

import (
	"context"
	"io"
	"os"
	goruntime "runtime"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/term"
)

// hugePeriod is how often a huge terminal is asked for its size.
const hugePeriod = 300 * time.Millisecond

// clampSize is a terminal's size as a screen may have it, see [bounded].
func clampSize(w, h int) (width, height int) { return min(w, MaxWidth), min(h, MaxHeight) }

// HugeTerminal is the terminal that out is, where it begins larger than a screen may be; nil where it does not. Bubble
// Tea makes a screen of the size that a terminal has at its start before any message can say another one.
func HugeTerminal(out io.Writer) term.File {
	if out == nil {
		out = os.Stdout
	}
	f, ok := out.(term.File)
	if !ok || goruntime.GOOS == "windows" || !term.IsTerminal(f.Fd()) { // there it must be told to understand sequences
		return nil
	}
	w, h, err := term.GetSize(f.Fd())
	if sw, sh := clampSize(w, h); err != nil || sw == w && sh == h {
		return nil
	}
	return f
}

// HugeTerminalOptions are the options of a program on a huge terminal: it writes there as to no terminal.
func HugeTerminalOptions(f term.File, env []string) []tea.ProgramOption {
	return []tea.ProgramOption{tea.WithOutput(struct{ io.Writer }{f}), tea.WithColorProfile(colorprofile.Detect(f, env)),
		tea.WithWindowSize(MaxWidth, MaxHeight)}
}

// WatchHugeTerminal tells a program of the sizes that its terminal has until ctx ends.
func WatchHugeTerminal(ctx context.Context, f term.File, p *tea.Program) {
	tick := time.NewTicker(hugePeriod)
	defer tick.Stop()
	var last tea.WindowSizeMsg
	for {
		if w, h, err := term.GetSize(f.Fd()); err == nil && (last != tea.WindowSizeMsg{Width: w, Height: h}) {
			last = tea.WindowSizeMsg{Width: w, Height: h}
			p.Send(last)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
