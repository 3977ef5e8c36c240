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

// TestToolTimeout: a tool of the toolkit that does not finish in time is ended together with its child processes.
func TestToolTimeout(t *testing.T) {
	dir := t.TempDir()
	tool, pipe := filepath.Join(dir, "tool"), filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip("this system has no named pipes: " + err.Error())
	}
	if err := os.WriteFile(tool, []byte("#!/bin/sh\nsleep 600 >"+pipe+" &\nwait\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		f, err := os.Open(pipe) // returns once the child of the tool has it open
		if err != nil {
			ended <- err
			return
		}
		defer f.Close()
		cancel()
		_, err = io.ReadAll(f) // until no process has it open
		ended <- err
	}()
	if _, err := Sanitize(ctx, tool, "memcheck", "true"); err == nil {
		t.Error("a tool that did not finish returned no error")
	}
	var card Device
	card.Info.Tensor = "cuda8.0"
	if _, err := card.Assemble(ctx, tool); err == nil {
		t.Error("the assembler ran after its context was canceled")
	}
	if err := testutil.Receive(t, ended, "end of the child process"); err != nil {
		t.Error(err)
	}
}
