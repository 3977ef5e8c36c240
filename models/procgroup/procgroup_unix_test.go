//go:build unix

package procgroup

import (
	"context"
	"errors"
	"io"
	"os"
	"testing"
)

// TestCommand: the end of the context kills the child of the command too, which holds the pipe open; Kill reports
// that nothing is left.
func TestCommand(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := Command(ctx, "sh", "-c", "sleep 600 & echo started; wait")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, len("started"))); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := io.ReadAll(out); err != nil { // ends when the last process of the group has ended
		t.Error(err)
	}
	if err := c.Wait(); err == nil {
		t.Error("the command ended by itself")
	}
	ended := Command(t.Context(), "true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	if err := Kill(ended); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("killing what has ended: %v", err)
	}
}
