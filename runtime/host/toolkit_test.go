//go:build unix

package host

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestToolsEndWhole: a program of the toolkit that is not done in time ends with all that it began.
func TestToolsEndWhole(t *testing.T) {
	dir := t.TempDir()
	tool, late := filepath.Join(dir, "tool"), filepath.Join(dir, "late")
	if err := os.WriteFile(tool, []byte("#!/bin/sh\n(sleep 0.3; : >"+late+") &\nwait\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := Sanitize(ctx, tool, "memcheck", "true"); err == nil {
		t.Error("it was not done, and says nothing")
	}
	var card Device
	card.Info.Tensor = "cuda8.0"
	if _, err := card.Assemble(ctx, tool); err == nil {
		t.Error("it assembles after its time")
	}
	time.Sleep(400 * time.Millisecond)
	if _, err := os.Stat(late); err == nil {
		t.Error("what it began goes on")
	}
}
