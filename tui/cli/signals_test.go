package cli

import (
	"os"
	"slices"
	"syscall"
	"testing"

	"brood/runtime/testutil"
)

// TestRepeatedSignal: Ctrl+C and the loss of the reader, in either order, count as one signal; later signals are
// separate.
func TestRepeatedSignal(t *testing.T) {
	const gone, last = syscall.SIGPIPE, syscall.SIGQUIT
	for _, c := range []struct{ come, want []os.Signal }{
		{[]os.Signal{os.Interrupt, gone}, []os.Signal{os.Interrupt}},
		{[]os.Signal{gone, os.Interrupt}, []os.Signal{gone}},
		{[]os.Signal{os.Interrupt, gone, os.Interrupt}, []os.Signal{os.Interrupt, os.Interrupt}},
		{[]os.Signal{gone, os.Interrupt, syscall.SIGTERM}, []os.Signal{gone, syscall.SIGTERM}},
		{[]os.Signal{os.Interrupt, os.Interrupt}, []os.Signal{os.Interrupt, os.Interrupt}},
	} {
		out, in, closed, done := make(chan os.Signal, 4), make(chan os.Signal), make(chan struct{}), make(chan struct{})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			forwardSignals(out, in, &stdoutWriter{gone: closed}, done)
		}()
		for _, sig := range append(c.come, last) {
			if sig != gone {
				in <- sig
				continue
			}
			close(closed)
			if sig == c.come[0] { // it is seen before what comes next
				testutil.Eventually(t, "the reader is gone", func() bool { return len(out) == 1 })
			}
		}
		testutil.Eventually(t, "all have come", func() bool { return len(out) > 0 && len(out) >= len(c.want)+1 })
		close(done)
		<-ended
		close(out)
		var got []os.Signal
		for sig := range out {
			got = append(got, sig)
		}
		c.want = append(c.want, last)
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.come, got, c.want)
		}
	}
}
