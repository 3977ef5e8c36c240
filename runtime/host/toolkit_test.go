//go:build unix

package host

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"brood/runtime/testutil"
)

// TestToolsEndWhole: a program of the toolkit that is not done in time ends with all that it began.
func TestToolsEndWhole(t *testing.T) {
	dir := t.TempDir()
	tool, pipe := filepath.Join(dir, "tool"), filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip("no named pipes here: " + err.Error())
	}
	if err := os.WriteFile(tool, []byte("#!/bin/sh\nsleep 600 >"+pipe+" &\nwait\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		f, err := os.Open(pipe) // once what the tool begins has it open
		if err != nil {
			ended <- err
			return
		}
		defer f.Close()
		cancel()
		_, err = io.ReadAll(f) // until nobody has it open
		ended <- err
	}()
	if _, err := Sanitize(ctx, tool, "memcheck", "true"); err == nil {
		t.Error("it was not done, and says nothing")
	}
	var card Device
	card.Info.Tensor = "cuda8.0"
	if _, err := card.Assemble(ctx, tool); err == nil {
		t.Error("it assembles after its time")
	}
	if err := testutil.Receive(t, ended, "end of what it began"); err != nil {
		t.Error(err)
	}
}
