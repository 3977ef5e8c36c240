package option

import (
	"fmt"
	"maps"
	"slices"

	"brood/models/usererr"
	"brood/runtime/event"
)

// Record stores the options in the recorded configuration c.
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
	c.More = with(c.More, x.Name, x.Text(o))
}

// Recorded returns the options of a recorded configuration. It returns an error if this version of brood lacks one of
// the options, since the run would differ without it.
func Recorded(c event.Config) (o Options, err error) {
	for _, x := range With(Logged) {
		if x.in != nil {
			assign(x.at(&o), x.in(&c))
		} else if text := c.More[x.Name]; text != "" {
			if err := x.Set(&o, text); err != nil {
				return o, fmt.Errorf("the session records %s = %q, which is not a %w", x.Name, text, err)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.More)) {
		if x := Named(name); x == nil || !x.Has(Logged) {
			return o, fmt.Errorf("the session records the option %s = %q, which this version of brood lacks: use the version "+
				"that recorded it",
				name, c.More[name])
		}
	}
	return o, nil
}

// CheckResume returns an error if o has a value for an option that a resumed or branched session keeps.
func (o Options) CheckResume() error {
	for _, x := range All {
		if text := x.Text(o); text != "" && !x.Has(Again) {
			return usererr.Errorf("%s = %s: a resumed or branched session keeps its own value: omit it", x.Name, text)
		}
	}
	return nil
}

// ApplyResumed copies the options given to resume or branch a session to o and to the configuration c. It leaves out
// the limits of the run, which the caller sets.
func (o *Options) ApplyResumed(c *event.Config, given Options) {
	for _, x := range With(Again) {
		if x.Has(Ends) || x.Text(given) == "" {
			continue
		}
		if x.Copy(o, given); x.Has(Logged) {
			x.record(*o, c)
		}
	}
}
