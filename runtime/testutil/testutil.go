// Package testutil is test support: it waits for events, and fails the test with the name of the missing event and all
// stacks long before go test would end the package.
package testutil

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"
)

// Timeout is the time after which a test counts as hung.
const Timeout = 3 * time.Minute

// T is a test or a script of package testscript.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Receive returns the next value of c, or the zero value if c is closed.
func Receive[X any](t T, c <-chan X, what string) X {
	t.Helper()
	return within(t, Timeout, c, what)
}

func within[X any](t T, timeout time.Duration, c <-chan X, what string) (x X) {
	t.Helper()
	late := time.NewTimer(timeout)
	defer late.Stop()
	select {
	case x = <-c:
	case <-late.C:
		stacks := make([]byte, 1<<20)
		t.Fatalf("no %s after %s\n%s", what, timeout, stacks[:runtime.Stack(stacks, true)])
	}
	return x
}

// Eventually polls ok until it returns true.
func Eventually(t T, what string, ok func() bool) {
	t.Helper()
	until(t, Timeout, what, ok)
}

func until(t T, timeout time.Duration, what string, ok func() bool) {
	t.Helper()
	for late := time.Now().Add(timeout); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("after %s still not: %s", timeout, what)
			return
		}
	}
}

// Wait waits for the goroutines of a group.
func Wait(t T, all *sync.WaitGroup, what string) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		all.Wait()
	}()
	Receive(t, done, what)
}

// Context returns a context that ends with the test or after [Timeout].
func Context(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), Timeout)
	t.Cleanup(cancel)
	return ctx
}
