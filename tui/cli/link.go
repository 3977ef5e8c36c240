package cli

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"brood/runtime/event"
	"brood/runtime/simulate"
)

// linkFlags holds the flags that shape a link.
type linkFlags struct {
	rate          string
	delay, jitter time.Duration
	loss          float64
}

func (f *linkFlags) register(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.rate, "rate", "", "rate of each link per second, such as 10Mbit or 1.25MB (default: no limit)")
	fl.DurationVar(&f.delay, "delay", 0, "one-way delay of each packet, such as 20ms")
	fl.DurationVar(&f.jitter, "jitter", 0, "largest additional delay, uniformly distributed")
	fl.Float64Var(&f.loss, "loss", 0, "share of packets that are lost, such as 0.01")
}

// link parses the flags.
func (f *linkFlags) link() (l simulate.Link, err error) {
	l = simulate.Link{Delay: f.delay, Jitter: f.jitter, Loss: f.loss}
	if l.Rate, err = parseRate("rate", f.rate); err != nil {
		return l, err
	}
	if err := cmp.Or(checkDuration(time.Minute, "delay", f.delay),
		checkDuration(time.Minute, "jitter", f.jitter)); err != nil {
		return l, err
	}
	if err := l.Check(); err != nil {
		return l, usage("%w", err)
	}
	return l, nil
}

// checkDuration fails if the duration of a flag is negative or longer than most.
func checkDuration(most time.Duration, flag string, d time.Duration) error {
	switch {
	case d < 0:
		return usage("--%s %s: must not be negative", flag, d)
	case d > most && most == time.Minute:
		return usage("--%s %s: give at most a minute", flag, d)
	case d > most:
		return usage("--%s %s: give at most %s", flag, d, most)
	}
	return nil
}

// rates lists the units of a rate, in bytes per second.
var rates = []struct {
	unit  string
	bytes float64
}{{"kbit", 125}, {"Mbit", 125e3}, {"Gbit", 125e6}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}}

// parseRate parses a flag value to bytes per second; 0 for an empty text.
func parseRate(flag, text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	for _, r := range rates {
		if number, ok := strings.CutSuffix(text, r.unit); ok {
			if x, err := strconv.ParseFloat(number, 64); err == nil && x > 0 && x*r.bytes < 1e15 {
				return x * r.bytes, nil
			}
		}
	}
	return 0, usage("--%s %s: give a number and a unit, such as 10Mbit, 1Gbit or 1.25MB", flag, text)
}

// fleetLinkCommand returns the command that shapes the links of a running run, like the form of the Fleet screen.
func fleetLinkCommand(s streams) *cobra.Command {
	f := &linkFlags{}
	var take bool
	from, to := event.Every, event.Every
	c := &cobra.Command{
		Use:   "link SESSION|URL",
		Short: "Slow down the links between workers of a served run",
		Long: "Slow down the links between workers of a served run: all of them, or those from or to one worker.\n" +
			"The setting lasts until the next such command, and does not change the results of the run. Without a flag\n" +
			"links are not limited.",
		Example: `  brood fleet link SESSION --rate 10Mbit --delay 20ms
  brood fleet link SESSION --from 0 --to 1 --loss 0.01
  brood fleet link SESSION`,
		Args: exactly("a SESSION or URL"),
		RunE: func(c *cobra.Command, args []string) error {
			l, err := f.link()
			if err != nil {
				return err
			}
			for _, name := range []string{"from", "to"} {
				if w, _ := c.Flags().GetInt(name); c.Flags().Changed(name) && w < 0 {
					return usage("--%s %d: give the number of a worker, as on the Fleet screen", name, w)
				}
			}
			slow := event.Link{From: from, To: to, Rate: int64(l.Rate), Delay: l.Delay, Jitter: l.Jitter, Loss: l.Loss}
			return send(c.Context(), args[0], "", take, event.Command{Link: &slow}, s)
		},
	}
	f.register(c)
	c.Flags().IntVar(&from, "from", event.Every, "limit only what this worker sends")
	c.Flags().IntVar(&to, "to", event.Every, "limit only what is sent to this worker")
	for _, name := range []string{"from", "to"} {
		c.Flags().Lookup(name).DefValue = "every worker"
	}
	c.Flags().BoolVar(&take, "take", false, "take the writer's lease from its holder")
	return c
}
