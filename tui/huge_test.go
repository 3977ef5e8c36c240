//go:build unix

package tui

import (
	"io"
	goruntime "runtime"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/creack/pty"

	"brood/runtime/testutil"
	"brood/runtime/view/sourcetest"
	"brood/tui/panel"
)

// TestHugeTerminalAtTheStart checks that a terminal that starts with 3000 x 3000 cells does not allocate a gigabyte,
// and that a later size is followed.
func TestHugeTerminalAtTheStart(t *testing.T) {
	far, near, err := pty.Open()
	if err != nil {
		t.Skipf("no terminal can be made here: %v", err)
	}
	if err := pty.Setsize(near, &pty.Winsize{Rows: 3000, Cols: 3000}); err != nil {
		t.Fatal(err)
	}
	drawn := &shown{want: "training", seen: make(chan struct{})}
	halves := "╰" + strings.Repeat("─", 43) + "╯╰" // the foot of two panels side by side in 90 columns
	smaller := &shown{want: halves, seen: make(chan struct{})}
	read := make(chan struct{})
	go func() { defer close(read); _, _ = io.Copy(io.MultiWriter(drawn, smaller), far) }()
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	p, done := Program(t.Context(), panel.Options{Source: sourcetest.NewMemory(sourcetest.Run(3, 40)...), In: near,
		Out: near,
		Env: []string{"TERM=xterm-256color"}})
	end := make(chan tea.Model, 1)
	go func() {
		m, err := p.Run()
		if err != nil {
			t.Error(err)
		}
		end <- m
	}()
	await(t, drawn)
	goruntime.ReadMemStats(&after)
	if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 200 {
		t.Errorf("it has taken %d MB", mb)
	}
	if err := pty.Setsize(near, &pty.Winsize{Rows: 30, Cols: 90}); err != nil {
		t.Fatal(err)
	}
	await(t, smaller)
	p.Quit()
	if m, ok := testutil.Receive(t, end, "end of the workbench").(*model); !ok || m.W != 90 || m.H != 30 {
		t.Errorf("made smaller to 90 by 30 it counts as %d by %d", m.W, m.H)
	}
	if err := done(); err != nil {
		t.Error(err)
	}
	near.Close()
	far.Close()
	<-read
}
