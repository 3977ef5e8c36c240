package soon

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// told is a test that keeps why it fails.
type told struct{ why string }

func (t *told) Fatalf(format string, args ...any) { t.why = fmt.Sprintf(format, args...) }

// TestHung: what comes is handed on, and what does not come is named, with the goroutine that waits for it.
func TestHung(t *testing.T) {
	c := make(chan int, 1)
	c <- 3
	if got := Next(t, c, "number"); got != 3 {
		t.Errorf("got %d", got)
	}
	All(t, &sync.WaitGroup{}, "end of nobody")
	left := 3
	Until(t, "nothing is left", func() bool { left--; return left == 0 })
	var x told
	until(&x, time.Millisecond, "it rains", func() bool { return false })
	if x.why != "after 1ms still not: it rains" || left != 0 {
		t.Errorf("told %q, left %d", x.why, left)
	}
	within(&x, time.Millisecond, c, "other number")
	if !strings.HasPrefix(x.why, "after 1ms there is still no other number\n") || !strings.Contains(x.why, "soon.TestHung") {
		t.Errorf("told %q", x.why)
	}
}
