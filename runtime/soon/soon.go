// Package soon is test support: it waits for what must come, and where that does not come it says what is missing
// and what every goroutine does, long before go test ends the whole package.
package soon

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"
)

// Latest is how long anything may take before a test calls it hung: no measure of speed.
const Latest = 3 * time.Minute

// T is a test, or a script of one.
type T interface {
	Helper() // marks who calls it: a failure names the line of its caller
	Fatalf(format string, args ...any)
}

// Next is what comes next on c, or the zero value where c is closed.
func Next[X any](t T, c <-chan X, what string) X {
	t.Helper()
	return within(t, Latest, c, what)
}

func within[X any](t T, longest time.Duration, c <-chan X, what string) (x X) {
	t.Helper()
	late := time.NewTimer(longest)
	defer late.Stop()
	select {
	case x = <-c:
	case <-late.C:
		stacks := make([]byte, 1<<20)
		t.Fatalf("after %s there is still no %s\n%s", longest, what, stacks[:runtime.Stack(stacks, true)])
	}
	return x
}

// Until asks again and again until ok says so.
func Until(t T, what string, ok func() bool) {
	t.Helper()
	until(t, Latest, what, ok)
}

func until(t T, longest time.Duration, what string, ok func() bool) {
	t.Helper()
	for late := time.Now().Add(longest); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("after %s still not: %s", longest, what)
			return
		}
	}
}

// All waits for everybody of a group.
func All(t T, all *sync.WaitGroup, what string) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		all.Wait()
	}()
	Next(t, done, what)
}

// Context ends with the test, or when it is called hung.
func Context(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), Latest)
	t.Cleanup(cancel)
	return ctx
}
