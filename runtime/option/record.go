package option

import (
	"fmt"
	"maps"
	"slices"

	"brood/models/usererr"
	"brood/runtime/event"
)

// Record puts what is told into the configuration of a log.
func (o Options) Record(c *event.Config) {
	for _, x := range With(Logged) {
		x.record(o, c)
	}
}

func (x *Option) record(o Options, c *event.Config) {
	if x.in != nil {
		assign(x.in(c), x.at(&o))
		return
	}
	c.Told = with(c.Told, x.Name, x.Text(o))
}

// Recorded is what a recorded configuration was told; an option that nobody here knows is refused, since the run would
// be another without it.
func Recorded(c event.Config) (o Options, err error) {
	for _, x := range With(Logged) {
		if x.in != nil {
			assign(x.at(&o), x.in(&c))
		} else if text := c.Told[x.Name]; text != "" {
			if err := x.Set(&o, text); err != nil {
				return o, fmt.Errorf("the session records %s = %q, which is no %w", x.Name, text, err)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Told)) {
		if x := Named(name); x == nil || !x.Has(Logged) {
			return o, fmt.Errorf("the session was told %s = %q, which this brood does not know: use the one that recorded it",
				name, c.Told[name])
		}
	}
	return o, nil
}

// Kept refuses options of a session that goes on or branches which it keeps as they were.
func (o Options) Kept() error {
	for _, x := range All {
		if text := x.Text(o); text != "" && !x.Has(Again) {
			return usererr.Errorf("%s = %s cannot be told to a session that goes on: it keeps its own", x.Name, text)
		}
	}
	return nil
}

// Retell makes of o, and of the configuration c, what is told again when a session goes on or branches. What ends the
// run is left to whoever knows how far it is.
func (o *Options) Retell(c *event.Config, told Options) {
	for _, x := range With(Again) {
		if x.Has(Ends) || x.Text(told) == "" {
			continue
		}
		if x.Copy(o, told); x.Has(Logged) {
			x.record(*o, c)
		}
	}
}
