package tui

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"go.uber.org/goleak"

	"brood/optim"
	"brood/runtime/testutil"
	"brood/runtime/view/sourcetest"
	"brood/tui/panel"
)

// TestRunDrawsAndLeaves runs a whole session over pipes: it draws, and q leaves without an error, a command or a
// goroutine.
func TestRunDrawsAndLeaves(t *testing.T) {
	defer goleak.VerifyNone(t)
	in, keys := io.Pipe()
	out := &shown{want: "training", seen: make(chan struct{})}
	src := sourcetest.NewMemory(sourcetest.Run(3, 40)...)
	end := make(chan error, 1)
	go func() {
		end <- Run(context.Background(), panel.Options{Source: src,
			Algorithms: []*optim.Algorithm{sourcetest.Algorithm()}, In: in, Out: out,
			Env: []string{"TERM=xterm-256color", "NO_COLOR=1"}, Width: 100, Height: 30})
	}()
	await(t, out)
	keys.Write([]byte("q"))
	if err := testutil.Receive(t, end, "end of the workbench"); err != nil {
		t.Error(err)
	}
	keys.Close()
	if s := out.all.String(); strings.Contains(s, "\x1b[38;") || strings.Contains(s, "\x1b[1;") {
		t.Error("with NO_COLOR the output has colours")
	}
}

// TestRunSwitchesSessions checks that opening another session closes the first one, that the end closes the other
// one, and that no goroutine of either remains.
func TestRunSwitchesSessions(t *testing.T) {
	defer goleak.VerifyNone(t)
	in, keys := io.Pipe()
	out := &shown{want: "quickstart-7f3a", seen: make(chan struct{})}
	there := &shown{want: "recording", seen: make(chan struct{})}
	lib := &fakeLibrary{list: recordedOnes()}
	first := lib.list[1].Dir
	end := make(chan error, 1)
	go func() {
		end <- Run(context.Background(), panel.Options{Source: sourcetest.NewMemory(sourcetest.Run(3, 40)...),
			Session: first, Library: lib, Algorithms: []*optim.Algorithm{sourcetest.Algorithm()}, In: in,
			Close: func() error { lib.closed = append(lib.closed, first); return nil },
			Out:   io.MultiWriter(out, there), Env: []string{"TERM=xterm-256color",
				"NO_COLOR=1"}, Width: 100, Height: 30})
	}()
	keys.Write([]byte("9"))
	await(t, out)
	keys.Write([]byte("j\r"))
	await(t, there)
	keys.Write([]byte("q"))
	if err := testutil.Receive(t, end, "end of the workbench"); err != nil {
		t.Error(err)
	}
	keys.Close()
	if want := []string{first, "/s/2026-11-20-quickstart-7f3a"}; !slices.Equal(lib.closed, want) {
		t.Errorf("closed %v, want %v", lib.closed, want)
	}
}

func await(t *testing.T, s *shown) {
	t.Helper()
	testutil.Receive(t, s.seen, fmt.Sprintf("%q on the screen", s.want))
}

func TestRunEndsWithItsContext(t *testing.T) {
	defer goleak.VerifyNone(t)
	in, keys := io.Pipe()
	defer keys.Close()
	ctx, cancel := context.WithCancel(context.Background())
	out := &shown{want: "waiting", seen: make(chan struct{})}
	end := make(chan error, 1)
	go func() {
		end <- Run(ctx, panel.Options{Source: sourcetest.NewMemory(), In: in, Out: out, Env: []string{"TERM=xterm"}})
	}()
	await(t, out)
	cancel()
	if err := testutil.Receive(t, end, "end of the workbench"); err != nil {
		t.Error(err)
	}
}

// TestHugeTerminal checks that the workbench draws at most 400 x 120 cells, whatever size the terminal reports at its
// start or later. Bubble Tea itself drops sizes of more than a million cells.
func TestHugeTerminal(t *testing.T) {
	defer goleak.VerifyNone(t)
	in, keys := io.Pipe()
	defer keys.Close()
	for _, size := range [][2]int{{3000, 300}, {50, 20}} {
		out := &shown{want: "training", seen: make(chan struct{})}
		p, done := Program(t.Context(), panel.Options{Source: sourcetest.NewMemory(sourcetest.Run(3, 40)...), In: in,
			Out: out, Emulated: true, Env: []string{"TERM=xterm"}, Width: size[0], Height: size[1]})
		end := make(chan tea.Model, 1)
		go func() {
			m, err := p.Run()
			if err != nil {
				t.Error(err)
			}
			end <- m
		}()
		await(t, out)
		p.Send(tea.WindowSizeMsg{Width: 3000, Height: 300})
		p.Quit()
		if m, ok := testutil.Receive(t, end, "end of the workbench").(*model); !ok || m.W != panel.MaxWidth ||
			m.H != panel.MaxHeight {
			t.Errorf("started with %v, a terminal of 3000 by 300 counts as %d by %d", size, m.W, m.H)
		}
		if err := done(); err != nil {
			t.Error(err)
		}
	}
}

func TestRunNeedsASource(t *testing.T) {
	if err := Run(context.Background(), panel.Options{}); err == nil || !strings.Contains(err.Error(), "attach") {
		t.Errorf("without a source: %v", err)
	}
}

// shown stores the output and signals when it contains a word.
type shown struct {
	all  bytes.Buffer
	want string
	seen chan struct{}
	done bool
}

func (s *shown) Write(p []byte) (int, error) {
	s.all.Write(p)
	if !s.done && strings.Contains(s.all.String(), s.want) {
		s.done = true
		close(s.seen)
	}
	return len(p), nil
}
