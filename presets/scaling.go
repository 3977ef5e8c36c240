package presets

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"brood/models/tomlerr"
	"brood/models/usererr"
	"brood/runtime/option"
)

//go:embed scaling/*.toml
var plans embed.FS

// Scaling is a plan to measure how presets scale over sizes of fleets. Where it has a target, runs end there, and what
// counts is the time and the bytes to it. Else they have so many rounds, and what counts is a round's time: of a
// population that grows with the fleet (weak), and of one that is shared out (strong).
type Scaling struct {
	Name    string  `toml:"-"`
	Title   string  `toml:"title"`
	Doc     string  `toml:"doc"`
	Paper   string  `toml:"paper"`
	Expect  string  `toml:"expect"`  // time on two cores
	Workers []int   `toml:"workers"` // sizes of the fleet, ascending
	Slow    float64 `toml:"slow"`    // how many times slower than this machine each worker computes
	// FastFrames: what workers send and receive is as fast as on this machine all the same.
	FastFrames bool `toml:"fast_frames" json:",omitzero"`

	Links   []string `toml:"links"`   // rates of each link, such as "100Mbit"; "" is no limit
	Delay   string   `toml:"delay"`   // of every packet where a link has a rate, such as "1ms"
	Each    []int    `toml:"each"`    // members of each worker: weak, or with a target
	Members []int    `toml:"members"` // strong: members of all workers together
	Rounds  uint64   `toml:"rounds"`
	Epochs  float64  `toml:"epochs"`                 // at which a run that misses its target ends
	Target  string   `toml:"target"`                 // such as "loss=0.2"
	Seeds   int      `toml:"seeds" json:",omitzero"` // with which each run is measured, 1 to so many; 0 is 1
	Curves  []Curve  `toml:"curves"`
}

// Curve is a line of the plots: a preset, with settings over it.
type Curve struct {
	Name   string   `toml:"name"`
	Preset string   `toml:"preset"`
	Set    []string `toml:"set"`   // NAME=VALUE: options that a sweep may vary, and knobs; VALUE workers is their number
	Probe  uint64   `toml:"probe"` // rounds between probes, by which a target on the loss is met; needed with one
}

// Run is one run of a plan.
type Run struct {
	Curve            Curve
	Link             string // one of the plan's; "" of a single worker
	Workers, Members int
}

// Settings are those of the run, over its preset.
func (r Run) Settings() (out []Setting) {
	for _, text := range r.Curve.Set {
		name, value, _ := strings.Cut(text, "=")
		if value == "workers" {
			value = strconv.Itoa(r.Workers)
		}
		out = append(out, Setting{name, value})
	}
	return append(out, Setting{option.Members.Name, strconv.Itoa(r.Members)})
}

// Plans names the embedded plans.
func Plans() (out []string) {
	entries, _ := plans.ReadDir("scaling")
	for _, e := range entries {
		out = append(out, strings.TrimSuffix(e.Name(), ".toml"))
	}
	slices.Sort(out)
	return out
}

// LoadPlan reads an embedded plan, or a file when nameOrPath ends in .toml.
func LoadPlan(nameOrPath string) (Scaling, error) {
	var text []byte
	var err error
	if strings.HasSuffix(nameOrPath, ".toml") {
		if text, err = os.ReadFile(nameOrPath); err != nil {
			return Scaling{}, fmt.Errorf("plan: %w",
				usererr.File(err, nameOrPath, "give the path of a .toml file, or a name of `brood scale`"))
		}
	} else if text, err = plans.ReadFile("scaling/" + nameOrPath + ".toml"); err != nil {
		return Scaling{}, usererr.Errorf("there is no plan %q%s: choose one of %s, or give the path of a .toml file",
			nameOrPath, usererr.Suggest(nameOrPath, Plans()), strings.Join(Plans(), ", "))
	}
	s := Scaling{Name: strings.TrimSuffix(filepath.Base(nameOrPath), ".toml"), Slow: 1}
	if err := tomlerr.Decode(text, &s); err != nil {
		return s, usererr.Errorf("plan %s: %w", nameOrPath, err)
	}
	if err := s.check(); err != nil {
		return s, usererr.Errorf("plan %s: %w", nameOrPath, err)
	}
	for i, c := range s.Curves {
		if strings.HasSuffix(c.Preset, ".toml") && !filepath.IsAbs(c.Preset) {
			s.Curves[i].Preset = filepath.Join(filepath.Dir(nameOrPath), c.Preset)
		}
	}
	return s, nil
}

// maxFleet is the largest fleet of processes that a plan starts on one machine, and maxSeeds how often it runs one at
// most.
const (
	maxFleet = 64
	maxSeeds = 100
)

func (s Scaling) check() error {
	rising := func(name string, all []int, most int) error {
		for i, n := range all {
			if n < 1 || n > most || i > 0 && n <= all[i-1] {
				return fmt.Errorf("%s = %v: give numbers from 1 to %d, each above the one before", name, all, most)
			}
		}
		return nil
	}
	const members = 1 << 18
	if err := errors.Join(rising("workers", s.Workers, maxFleet), rising("each", s.Each, members),
		rising("members", s.Members, members)); err != nil {
		return err
	}
	switch {
	case len(s.Workers) == 0:
		return errors.New("give workers, the sizes of the fleet, such as [1, 2, 4]")
	case len(s.Curves) == 0:
		return errors.New("give at least one [[curves]], with a name and a preset")
	case len(s.Each)+len(s.Members) == 0:
		return errors.New("give each, the members of each worker, or members, those of all workers together, or both")
	case s.Target == "" && s.Rounds < 6:
		return errors.New("give rounds, 6 or more, and 8 where they are short (the first two do not count), or a target")
	case s.Target != "" && (len(s.Members) > 0 || s.Rounds > 0 || !(s.Epochs > 0)):
		return errors.New("with a target give each, and epochs at which a run ends that misses it; no members and no rounds")
	case s.Target == "" && s.Epochs != 0:
		return errors.New("epochs go with a target")
	case s.Delay != "" && !slices.ContainsFunc(s.Links, func(l string) bool { return l != "" }):
		return errors.New("delay is of links with a rate: give links one, such as 100Mbit")
	case len(slices.Compact(slices.Sorted(slices.Values(s.Links)))) < len(s.Links):
		return fmt.Errorf("links = %q: give each once", s.Links)
	case s.FastFrames && s.Slow == 1:
		return errors.New("fast_frames is of workers that are slower: give slow too")
	case s.Seeds < 0 || s.Seeds > maxSeeds:
		return fmt.Errorf("seeds = %d: give a number from 1 to %d", s.Seeds, maxSeeds)
	case !(s.Slow >= 1 && s.Slow <= 100):
		return fmt.Errorf("slow = %g: give a factor from 1 to 100", s.Slow)
	}
	names := map[string]bool{}
	for _, c := range s.Curves {
		if c.Name == "" || names[c.Name] {
			return fmt.Errorf("a curve is called %q: give each a name of its own", c.Name)
		}
		names[c.Name] = true
		if (s.Target == "") != (c.Probe == 0) {
			return fmt.Errorf("curve %s: give probe, the rounds between probes, where the plan has a target, and nowhere else",
				c.Name)
		}
		for _, text := range c.Set {
			if name, value, ok := strings.Cut(text, "="); !ok || name == "" || value == "" || name == "members" ||
				name == "workers" {
				return fmt.Errorf("curve %s: set has %q: give NAME=VALUE, and members and workers of the plan alone", c.Name, text)
			}
		}
	}
	return nil
}

// Repeats is how many runs there are of each kind, which differ in their seed alone.
func (s Scaling) Repeats() int { return max(1, s.Seeds) }

// Rates are the links of a plan; one that names none has links without limit.
func (s Scaling) Rates() []string {
	if len(s.Links) == 0 {
		return []string{""}
	}
	return s.Links
}

// populations are the members on so many workers, without those that share out fewer than one each.
func (s Scaling) populations(workers int) (out []int) {
	for _, n := range s.Each {
		out = append(out, n*workers)
	}
	for _, n := range s.Members {
		if n >= workers {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Runs are those of the plan on so many workers, each once, whatever its seeds. A single worker has no links: its runs
// are those of every link.
func (s Scaling) Runs(workers int) (out []Run) {
	for _, c := range s.Curves {
		for i, l := range s.Rates() {
			if workers == 1 && i > 0 {
				break
			}
			if workers == 1 {
				l = ""
			}
			for _, n := range s.populations(workers) {
				out = append(out, Run{c, l, workers, n})
			}
		}
	}
	return out
}
