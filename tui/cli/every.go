package cli

import "time"

// every calls f once a period, in another goroutine. stop ends the calls and waits for that goroutine; call it once.
func every(period time.Duration, f func(now time.Time)) (stop func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(period)
		defer tick.Stop()
		for {
			select {
			case now := <-tick.C:
				f(now)
			case <-over:
				return
			}
		}
	}()
	return func() {
		close(over)
		<-ended
	}
}
