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

// hugePeriod is the interval at which the size of a huge terminal is polled.
const hugePeriod = 300 * time.Millisecond

// clampSize limits a terminal size to MaxWidth x MaxHeight.
func clampSize(w, h int) (width, height int) { return min(w, MaxWidth), min(h, MaxHeight) }

// HugeTerminal returns the terminal of out (nil: standard output) if it is larger than MaxWidth x MaxHeight, else nil.
// Bubble Tea allocates a screen of the initial terminal size before any message can limit it. It returns nil on
// Windows, where Bubble Tea needs the terminal itself to enable escape sequences.
func HugeTerminal(out io.Writer) term.File {
	if out == nil {
		out = os.Stdout
	}
	f, ok := out.(term.File)
	if !ok || goruntime.GOOS == "windows" || !term.IsTerminal(f.Fd()) {
		return nil
	}
	w, h, err := term.GetSize(f.Fd())
	if sw, sh := clampSize(w, h); err != nil || sw == w && sh == h {
		return nil
	}
	return f
}

// HugeTerminalOptions returns the options of a program on a huge terminal. They hide from Bubble Tea that the output is
// a terminal, and set a limited window size.
func HugeTerminalOptions(f term.File, env []string) []tea.ProgramOption {
	return []tea.ProgramOption{tea.WithOutput(struct{ io.Writer }{f}),
		tea.WithColorProfile(colorprofile.Detect(f, env)),
		tea.WithWindowSize(MaxWidth, MaxHeight)}
}

// WatchHugeTerminal sends the size of a terminal to a program whenever it changes, until ctx ends.
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
