package host

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"brood/models/data"
	"brood/models/usererr"
	"brood/runtime/option"
)

// CheckContinues returns an error unless the session in dir records the run that these options would start, so that a
// command that is repeated continues its own session only. It compares the settings that a session keeps, the
// algorithm, the members, and the knobs that the options set. An option without a value is not compared.
func CheckContinues(dir string, o Options) error {
	h, err := read(dir, 0)
	if err != nil {
		return err
	}
	recorded, err := option.Recorded(h.config)
	if err != nil {
		return err
	}
	if data.IsPath(o.Data) {
		if o.Data, err = filepath.Abs(o.Data); err != nil {
			return err
		}
	}
	differs := func(name, was, now string) error {
		return usererr.Errorf("session %s was begun with %s = %s, and this command has %s: give another --session, or resume "+
			"it with --resume", dir, name, cmp.Or(was, "no value"), cmp.Or(now, "no value"))
	}
	for _, x := range option.With(option.Logged) {
		if was, now := x.Text(recorded), x.Text(o); !x.Has(option.Again) && now != "" && now != was {
			return differs(x.Name, was, now)
		}
	}
	first := h.first
	if first == nil { // the run ended before its first round
		return nil
	}
	if o.Algorithm != "" && o.Algorithm != first.Algorithm {
		return differs("algorithm", first.Algorithm, o.Algorithm)
	}
	if n := len(first.New.Members); o.Members > 0 && o.Members != n {
		return differs("members", fmt.Sprint(n), fmt.Sprint(o.Members))
	}
	was, now := map[string]string{}, map[string]string{}
	for _, e := range first.Timeline {
		if e.Algorithm == first.Algorithm && (e.By == "preset" || e.By == o.By) {
			was[e.Knob] = e.Expr
		}
	}
	for _, s := range slices.Concat(o.Base, o.Set) {
		now[s.Knob] = s.Expr
	}
	both := maps.Clone(was)
	maps.Copy(both, now)
	for _, knob := range slices.Sorted(maps.Keys(both)) {
		if was[knob] != now[knob] {
			return differs(knob, was[knob], now[knob])
		}
	}
	return nil
}
