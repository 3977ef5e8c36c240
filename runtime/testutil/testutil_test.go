package testutil

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// recordedFailure is a test that keeps its failure, and the functions that are marked as helpers.
type recordedFailure struct {
	why     string
	helpers []string
}

// Helper marks its caller, like that of a test.
func (t *recordedFailure) Helper() {
	pc, _, _, _ := runtime.Caller(1)
	name := runtime.FuncForPC(pc).Name()
	t.helpers = append(t.helpers,
		strings.TrimSuffix(name[strings.LastIndex(name, "testutil.")+len("testutil."):], "[...]"))
}

func (t *recordedFailure) Fatalf(format string, args ...any) { t.why = fmt.Sprintf(format, args...) }

// TestHung: received values are returned, and a missing value fails with its name and the waiting goroutine.
func TestHung(t *testing.T) {
	c := make(chan int, 1)
	c <- 3
	if got := Receive(t, c, "number"); got != 3 {
		t.Errorf("got %d", got)
	}
	Wait(t, &sync.WaitGroup{}, "end of nobody")
	left := 3
	Eventually(t, "nothing is left", func() bool { left--; return left == 0 })
	var x recordedFailure
	until(&x, time.Millisecond, "it rains", func() bool { return false })
	if x.why != "after 1ms still not: it rains" || left != 0 {
		t.Errorf("failed with %q, left %d", x.why, left)
	}
	within(&x, time.Millisecond, c, "other number")
	if !strings.HasPrefix(x.why, "no other number after 1ms\n") || !strings.Contains(x.why, "testutil.TestHung") {
		t.Errorf("failed with %q", x.why)
	}
}

// TestFailsAtItsCaller: a failure has the line of the test, so that all functions in between are marked as helpers.
func TestFailsAtItsCaller(t *testing.T) {
	c := make(chan int, 1)
	c <- 3
	for name, f := range map[string]func(T){
		"Receive within":      func(t T) { Receive(t, c, "number") },
		"Eventually until":    func(t T) { Eventually(t, "it rains", func() bool { return true }) },
		"Wait Receive within": func(t T) { Wait(t, &sync.WaitGroup{}, "end of nobody") },
	} {
		var x recordedFailure
		if f(&x); !slices.Equal(x.helpers, strings.Fields(name)) {
			t.Errorf("marked are %v, want %s", x.helpers, name)
		}
	}
}
