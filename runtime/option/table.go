package option

import (
	"math"
	goruntime "runtime"
	"strconv"

	"brood/models"
	"brood/models/data"
	"brood/models/typed"
	"brood/optim/catalog"
	"brood/runtime/coordinator"
	"brood/runtime/event"
)

// All is the table, in its order. Only tests replace it.
var All []*Option

// add puts a line into the table.
func add(x Option) *Option {
	All = append(All, &x)
	return &x
}

// To add an option, add a line here; without at and in its value is in Options.More, and in the log's Told. Nothing else
// changes but what the option is for, which reads [Option.Text], or the field that at names.
var (
	Algorithm = add(Option{Name: "algorithm", Doc: "algorithm (see brood algorithms)",
		Use: Preset | Axis, Default: "dp-sgd", Words: algorithms, Kind: Text, at: func(o *Options) any { return &o.Algorithm }})
	Model = add(Option{Name: "model", Doc: "model by name, or a layer list in a .toml file (see brood models)",
		Use: Preset | Full | Axis | Logged, Words: models.List, Paths: true, Kind: Text,
		at: func(o *Options) any { return &o.Model }, in: func(c *event.Config) any { return &c.Model }})
	Data = add(Option{Name: "data", Doc: "data set (see brood data list)",
		Use: Preset | Full | Axis | Logged, Words: data.List, Paths: true, Kind: Text,
		at: func(o *Options) any { return &o.Data }, in: func(c *event.Config) any { return &c.Data }})
	Augment = add(Option{Name: "augment",
		Doc: "how images change each time they are drawn for training: pad=4, flip, pad=4,flip or none",
		Use: Preset | Full | Logged, Check: augments, Words: augmentations, Kind: Text,
		at: func(o *Options) any { return &o.Augment }, in: func(c *event.Config) any { return &c.Augment }})
	Members = add(Option{Name: "members",
		Doc: "size of the population, or `auto`: what keeps the threads busy and fits into the memory",
		Use: Preset | Full | Axis, Kind: Population, Default: "4", Above: atLeastOne, Most: event.MaxMembers,
		at: func(o *Options) any { return &o.Members }})
	Workers = add(Option{Name: "workers", Doc: "workers that host the members, in this process",
		Docs: map[string]string{"serve": "workers in this process too (default 0)", "fork": "workers that host the members"},
		Use:  Preset | Full | Axis | Again, Kind: Whole, Default: "1", Above: atLeastOne, Most: 1024,
		at: func(o *Options) any { return &o.Workers }})
	Threads = add(Option{Name: "threads", Doc: "threads of all workers together (default: all cores)",
		Docs: map[string]string{"fork": "threads of all workers together",
			"reproduce": "threads of all runs together (default: all cores)"},
		Use: Again, Kind: Whole, Default: strconv.Itoa(goruntime.NumCPU()), Above: atLeastOne, Most: 1024,
		at: func(o *Options) any { return &o.Threads }})
	Wait = add(Option{Name: "wait", Doc: "start when so many workers have joined",
		Docs: map[string]string{"sweep": ofEachRun, "reproduce": ofEachRun},
		Use:  Again | Joined, Kind: Whole, Most: 1024,
		at: func(o *Options) any { return &o.Wait }})
	Epochs = add(Option{Name: "epochs", Doc: "stop after so many passes over the data",
		Docs: map[string]string{"fork": "stop after so many epochs"},
		Use:  Preset | Full | Axis | Again | Ends | Logged, Kind: Number, Above: "give a number above 0", Check: finite,
		at: func(o *Options) any { return &o.Limit.Epochs }, in: func(c *event.Config) any { return &c.Limit.Epochs }})
	Rounds = add(Option{Name: "rounds", Doc: "stop after so many rounds",
		Docs: map[string]string{"fork": "stop at this round"},
		Use:  Preset | Full | Axis | Again | Ends | Logged, Kind: Count, Above: atLeastOne,
		at: func(o *Options) any { return &o.Limit.Rounds }, in: func(c *event.Config) any { return &c.Limit.Rounds }})
	For = add(Option{Name: "for", Doc: "stop after so long, such as 30s",
		Use: Preset | Again | Ends | Logged, Kind: Span, Above: "give a duration such as 30s", Check: lasts,
		at: func(o *Options) any { return &o.Limit.Seconds }, in: func(c *event.Config) any { return &c.Limit.Seconds }})
	Target = add(Option{Name: "target",
		Doc:  "stop when a target is met: loss=0.1, test_loss=0.1 or test_error=2.8 (a preset's own limit stays)",
		Docs: map[string]string{"fork": "stop when a target is met"},
		Use:  Preset | Again | Ends | Logged, Kind: Text, Check: aims, Words: targets,
		at: func(o *Options) any { return &o.Limit.Target }, in: func(c *event.Config) any { return &c.Limit.Target }})
	Seed = add(Option{Name: "seed", Doc: "seed of all randomness (default 1)", Use: Preset | Logged, Kind: Count,
		at: func(o *Options) any { return &o.Seed }, in: func(c *event.Config) any { return &c.Seed }})
	Init = add(Option{Name: "init", Doc: "start from the parameters in this .safetensors file", Kind: Text,
		at: func(o *Options) any { return &o.Init }})
	OnLoss = add(Option{Name: "on-loss", Doc: "when a worker dies its members: reseed, rollback or shrink",
		Use: Preset | Again | Logged, Kind: Text, Default: coordinator.OnLossReseed,
		Choices: []string{coordinator.OnLossReseed, coordinator.OnLossRollback, coordinator.OnLossShrink},
		at:      func(o *Options) any { return &o.OnLoss }, in: func(c *event.Config) any { return &c.OnLoss }})
	OnTrouble = add(Option{Name: "on-trouble",
		Doc: "when a block is not finite, the disk is full or workers disagree: wait, stop, or back to the newest sane " +
			"checkpoint (default: wait in the workbench, else stop)",
		Use: Preset | Again | Logged, Kind: Text,
		Choices: []string{coordinator.OnTroubleWait, coordinator.OnTroubleStop, coordinator.OnTroubleBack},
		at:      func(o *Options) any { return &o.OnTrouble }, in: func(c *event.Config) any { return &c.OnTrouble }})
	Probe = add(Option{Name: "probe", Doc: "rounds between probes of the centre (default: about 5% of the work)",
		Use: Preset | Logged, Kind: Count,
		at: func(o *Options) any { return &o.Probe }, in: func(c *event.Config) any { return &c.Probe }})
	Evaluate = add(Option{Name: "evaluate", Doc: "rounds between test evaluations (default: each epoch)",
		Use: Preset | Logged, Kind: Count,
		at: func(o *Options) any { return &o.Evaluate }, in: func(c *event.Config) any { return &c.Evaluate }})
)

const (
	atLeastOne = "give 1 or more"
	ofEachRun  = "workers of each run (with --listen)"
)

func algorithms() (out []string) {
	for _, a := range catalog.All() {
		out = append(out, a.Name)
	}
	return out
}

func augmentations() []string { return []string{"pad=4", "flip", "pad=4,flip", "none"} }

func augments(text string) error {
	_, err := data.ParseAugment(text)
	return err
}

func targets() []string { return []string{"loss=0.1", "test_loss=0.1", "test_error=2.8"} }

func aims(text string) error {
	_, _, err := coordinator.Target(text)
	return err
}

func finite(text string) error {
	if x, err := strconv.ParseFloat(text, 64); err != nil || !(x > 0) || math.IsInf(x, 0) {
		return typed.Errorf("epochs = %s must be a number above 0", text)
	}
	return nil
}

func lasts(text string) error {
	seconds := Span.zero().(*float64)
	if err := Span.read(text, seconds); err != nil || *seconds < 0 {
		return typed.Errorf("a run for %g seconds is no run: give a duration such as 30s", *seconds)
	}
	return nil
}
