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

// Scaling is a plan to measure how presets scale with the size of the fleet. With a target, it measures the time and
// the bytes until the target is met. Otherwise it measures the time of a round, for a population that grows with the
// fleet (weak) and for a population of fixed size (strong).
type Scaling struct {
	Name    string  `toml:"-"`
	Title   string  `toml:"title"` // without one the name
	Doc     string  `toml:"doc"`
	Paper   string  `toml:"paper"`
	Expect  string  `toml:"expect"`  // time on two cores
	Workers []int   `toml:"workers"` // sizes of the fleet, ascending
	Slow    float64 `toml:"slow"`    // factor by which each worker is slower than this machine
	// FastFrames is set if only computing is slowed down, not sending and receiving.
	FastFrames bool `toml:"fast_frames" json:",omitzero"`

	Links   []string `toml:"links"`   // rates of links, such as "100Mbit"; "" means no limit
	Delay   string   `toml:"delay"`   // delay of packets on links with a rate, such as "1ms"
	Each    []int    `toml:"each"`    // members of each worker, for weak scaling or with a target
	Members []int    `toml:"members"` // members of the whole fleet, for strong scaling
	Rounds  uint64   `toml:"rounds"`
	Epochs  float64  `toml:"epochs"`                 // limit of runs that miss their target
	Target  string   `toml:"target"`                 // such as "loss=0.2"; "" for none
	Seeds   int      `toml:"seeds" json:",omitzero"` // number of runs of each kind, with seeds from 1; 0 means 1
	Curves  []Curve  `toml:"curves"`
}

// Curve is a line of the plots: a preset with settings.
type Curve struct {
	Name   string   `toml:"name"`
	Preset string   `toml:"preset"`
	Set    []string `toml:"set"`   // NAME=VALUE of a knob or an option of sweeps; VALUE workers: the fleet size
	Probe  uint64   `toml:"probe"` // rounds between probes, which detect that a target is met; required with a target
}

// Run is one run of a plan.
type Run struct {
	Curve            Curve
	Link             string // a link of the plan; "" for a single worker
	Workers, Members int
}

// Settings returns the settings of the run that override its preset.
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

// Plans returns the names of the embedded plans, sorted.
func Plans() (out []string) {
	entries, _ := plans.ReadDir("scaling")
	for _, e := range entries {
		out = append(out, strings.TrimSuffix(e.Name(), ".toml"))
	}
	slices.Sort(out)
	return out
}

// LoadPlan parses an embedded plan, or a file if nameOrPath ends in .toml.
func LoadPlan(nameOrPath string) (Scaling, error) {
	var text []byte
	var err error
	if strings.HasSuffix(nameOrPath, ".toml") {
		if text, err = os.ReadFile(nameOrPath); err != nil {
			return Scaling{}, fmt.Errorf("plan: %w",
				usererr.File(err, nameOrPath, "give the path of a .toml file, or a name of `brood scale`"))
		}
	} else if text, err = plans.ReadFile("scaling/" + nameOrPath + ".toml"); err != nil {
		return Scaling{}, usererr.Errorf("no plan %q%s: choose one of %s, or give the path of a .toml file",
			nameOrPath, usererr.Suggest(nameOrPath, Plans()), strings.Join(Plans(), ", "))
	}
	name := strings.TrimSuffix(filepath.Base(nameOrPath), ".toml")
	s := Scaling{Name: name, Title: name, Slow: 1}
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

const (
	maxFleet = 64  // workers of a plan, which are processes on one machine
	maxSeeds = 100 // runs of each kind
)

func (s Scaling) check() error {
	ascending := func(name string, all []int, most int) error {
		for i, n := range all {
			if n < 1 || n > most || i > 0 && n <= all[i-1] {
				return fmt.Errorf("%s = %v: give numbers from 1 to %d in ascending order", name, all, most)
			}
		}
		return nil
	}
	const members = 1 << 18
	if err := errors.Join(ascending("workers", s.Workers, maxFleet), ascending("each", s.Each, members),
		ascending("members", s.Members, members)); err != nil {
		return err
	}
	switch {
	case len(s.Workers) == 0:
		return errors.New("give workers, the sizes of the fleet, such as [1, 2, 4]")
	case len(s.Curves) == 0:
		return errors.New("give at least one [[curves]], with a name and a preset")
	case len(s.Each)+len(s.Members) == 0:
		return errors.New("give each (members of each worker), members (of the whole fleet), or both")
	case s.Target == "" && s.Rounds < 6:
		return errors.New("give rounds, 6 or more (8 or more if they are short, since the first two are ignored), or " +
			"a target")
	case s.Target != "" && (len(s.Members) > 0 || s.Rounds > 0 || !(s.Epochs > 0)):
		return errors.New("with a target give each and epochs, the limit of runs that miss it, but neither members " +
			"nor rounds")
	case s.Target == "" && s.Epochs != 0:
		return errors.New("epochs needs a target")
	case s.Delay != "" && !slices.ContainsFunc(s.Links, func(l string) bool { return l != "" }):
		return errors.New("delay applies to links with a rate: add a rate to links, such as 100Mbit")
	case len(slices.Compact(slices.Sorted(slices.Values(s.Links)))) < len(s.Links):
		return fmt.Errorf("links = %q: a rate is given twice", s.Links)
	case s.FastFrames && s.Slow == 1:
		return errors.New("fast_frames needs slow, the factor of slower workers")
	case s.Seeds < 0 || s.Seeds > maxSeeds:
		return fmt.Errorf("seeds = %d: give a number from 1 to %d", s.Seeds, maxSeeds)
	case !(s.Slow >= 1 && s.Slow <= 100):
		return fmt.Errorf("slow = %g: give a factor from 1 to 100", s.Slow)
	}
	names := map[string]bool{}
	for _, c := range s.Curves {
		if c.Name == "" || names[c.Name] {
			return fmt.Errorf("curve name %q is empty or used twice: give each curve a unique name", c.Name)
		}
		names[c.Name] = true
		if (s.Target == "") != (c.Probe == 0) {
			return fmt.Errorf("curve %s: give probe, the rounds between probes, if and only if the plan has a "+
				"target", c.Name)
		}
		for _, text := range c.Set {
			if name, value, ok := strings.Cut(text, "="); !ok || name == "" || value == "" || name == "members" ||
				name == "workers" {
				return fmt.Errorf("curve %s: set has %q: give NAME=VALUE; members and workers are keys of the "+
					"plan", c.Name, text)
			}
		}
	}
	return nil
}

// Repeats returns the number of runs of each kind, which differ only in their seeds.
func (s Scaling) Repeats() int { return max(1, s.Seeds) }

// Rates returns the links of a plan; one link without a limit if the plan has none.
func (s Scaling) Rates() []string {
	if len(s.Links) == 0 {
		return []string{""}
	}
	return s.Links
}

// populations returns the population sizes for this number of workers, without those with fewer members than workers.
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

// Runs returns the kinds of runs of the plan with this number of workers. A single worker has no links: it has one kind
// of run for all of them.
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
