package option

import (
	"math"
	goruntime "runtime"
	"strconv"

	"brood/models"
	"brood/models/data"
	"brood/models/usererr"
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

// To add an option, add a line here. Without at its value is in Options.More, and without in among the Told of the log:
// nothing else changes but what the option is for, which asks it for its [Option.Text].
var (
	Algorithm = add(Option{Name: "algorithm", Doc: "algorithm (see brood algorithms)",
		Kind: Text, Use: Preset | Axis, Default: "dp-sgd", Words: algorithms, at: func(o *Options) any { return &o.Algorithm }})
	Model = add(Option{Name: "model", Doc: "model by name, or a layer list in a .toml file (see brood models)",
		Kind: Text, Use: Preset | Full | Axis | Logged, Words: models.List, Paths: true,
		at: func(o *Options) any { return &o.Model }, in: func(c *event.Config) any { return &c.Model }})
	Data = add(Option{Name: "data", Doc: "data set (see brood data list)",
		Kind: Text, Use: Preset | Full | Axis | Logged, Words: data.List, Paths: true,
		at: func(o *Options) any { return &o.Data }, in: func(c *event.Config) any { return &c.Data }})
	Label = add(Option{Name: "label",
		Doc:  "column of a table that holds what is to be predicted, by name or counted from 1, or several with commas or as cls_*: classes one-hot, or outputs (default: label, class or target, else the last)",
		Kind: Text, Use: Preset | Full | Logged})
	Table = add(Option{Name: "table",
		Doc:  "how a table is read, with commas between the words: header or no-header says whether its first line holds names, and bytes that its numbers are pixels from 0 to 255 (default: the first line is looked at, and numbers are standardised)",
		Kind: Text, Use: Preset | Full | Logged, Check: tabulates, Words: func() []string { return data.TableWords }})
	Objective = add(Option{Name: "objective",
		Doc:  "`program` whose fitness is maximised, in place of model and data (docs/objectives.md); it is not recorded, and a session that goes on is told it again",
		Docs: map[string]string{"fork": "`program` of a session that maximises one: a session never starts it by itself"},
		Kind: Text, Use: Again, Paths: true})
	Program = add(Option{Name: "program",
		Doc:  "`program` that trains its own model on its own data, such as 'python3 train.py' (docs/programs.md); it is not recorded, and a session that is resumed is given it again",
		Docs: map[string]string{"fork": "`program` of a session that has one: a session never starts it by itself"},
		Kind: Text, Use: Again, Paths: true})
	Params = add(Option{
		Name:  "params",
		Doc:   "parameters of the objective: their number, or a SPEC.toml with names, shapes, bounds and seeds",
		Kind:  Text,
		Paths: true,
	})
	Members = add(Option{Name: "members",
		Doc:  "size of the population, or `auto`: what keeps the threads busy and fits into the memory",
		Kind: Population, Use: Preset | Full | Axis, Default: "4", Above: atLeastOne, Most: event.MaxMembers,
		at: func(o *Options) any { return &o.Members }})
	Workers = add(Option{Name: "workers", Doc: "workers that host the members, in this process",
		Docs: map[string]string{"serve": "workers in this process too (default 0)", "fork": "workers that host the members"},
		Kind: Whole, Use: Preset | Full | Axis | Again, Default: "1", Above: atLeastOne, Most: 1024,
		at: func(o *Options) any { return &o.Workers }})
	Threads = add(Option{Name: "threads", Doc: "threads of all workers together (default: all cores)",
		Docs: map[string]string{"fork": "threads of all workers together",
			"reproduce": "threads of all runs together (default: all cores)"},
		Kind: Whole, Use: Again, Default: strconv.Itoa(goruntime.NumCPU()), Above: atLeastOne, Most: 1024,
		at: func(o *Options) any { return &o.Threads }})
	Device = add(Option{
		Name:  "device",
		Doc:   "what computes: cpu, gpu, or a device that brood doctor lists; `cuda:0,bf16` has its tensor cores compute, and cpu,bf16 evaluates candidates in bfloat16, as cpu,amx does by the tiles of Intel's AMX (default: cpu)",
		Kind:  Text,
		Use:   Again,
		Check: computes,
		Words: devices,
		at:    func(o *Options) any { return &o.Device },
	})
	Wait = add(Option{Name: "wait", Doc: "start when so many workers have joined",
		Docs: map[string]string{"sweep": ofEachRun, "reproduce": ofEachRun},
		Kind: Whole, Use: Again | Joined, Most: 1024,
		at: func(o *Options) any { return &o.Wait }})
	Epochs = add(Option{Name: "epochs", Doc: "stop after so many passes over the data",
		Docs: map[string]string{"fork": "stop after so many epochs"},
		Kind: Number, Use: Preset | Full | Axis | Again | Ends | Logged, Above: "give a number above 0", Check: lasting,
		at: func(o *Options) any { return &o.Limit.Epochs }, in: func(c *event.Config) any { return &c.Limit.Epochs }})
	Rounds = add(Option{Name: "rounds", Doc: "stop after so many rounds",
		Docs: map[string]string{"fork": "stop at this round"},
		Kind: Count, Use: Preset | Full | Axis | Again | Ends | Logged, Above: atLeastOne,
		at: func(o *Options) any { return &o.Limit.Rounds }, in: func(c *event.Config) any { return &c.Limit.Rounds }})
	For = add(Option{Name: "for", Doc: "stop after so long, such as 30s",
		Kind: Span, Use: Preset | Again | Ends | Logged, Above: "give a duration such as 30s", Check: lasts,
		at: func(o *Options) any { return &o.Limit.Seconds }, in: func(c *event.Config) any { return &c.Limit.Seconds }})
	Target = add(Option{Name: "target",
		Doc: "stop when a target is met: loss=0.1, test_loss=0.1, test_error=2.8, test_bits=2, test_hamming=1, test_rmse=5, test_r2=0.9, or fitness=-0.1 of the best on " +
			"validation samples (a preset's own limit stays)",
		Docs: map[string]string{"fork": "stop when a target is met"},
		Kind: Text, Use: Preset | Again | Ends | Logged, Check: aims, Words: targets,
		at: func(o *Options) any { return &o.Limit.Target }, in: func(c *event.Config) any { return &c.Limit.Target }})
	Seed = add(Option{Name: "seed", Doc: "seed of all randomness (default 1)", Kind: Count, Use: Preset | Logged,
		at: func(o *Options) any { return &o.Seed }, in: func(c *event.Config) any { return &c.Seed }})
	Augment = add(Option{Name: "augment",
		Doc:  "how images change each time they are drawn for training: pad=4 or reflect=4, flip or alternate, both as in pad=4,flip, or none",
		Kind: Text, Use: Preset | Full | Logged, Check: augments, Words: augmentations,
		at: func(o *Options) any { return &o.Augment }, in: func(c *event.Config) any { return &c.Augment }})
	ClassWeights = add(Option{Name: "class-weights",
		Doc:  "what classes weigh in the loss that is trained on: balanced, which is by how rare they are, or NAME=WEIGHT with commas between them (default: all alike)",
		Kind: Text, Use: Preset | Full | Logged, Check: weighs, Words: func() []string { return []string{"none", data.Balanced} }})
	Validation = add(Option{Name: "validation",
		Doc:  "training samples that are held out for selection, fitness and probes: a share such as 0.1, a number, or 0 (default: a twelfth)",
		Kind: Text, Use: Preset | Full | Axis | Logged, Check: holds, Words: func() []string { return []string{"0", "0.1", "10000"} }})
	Rebuild = add(Option{Name: "rebuild",
		Doc:  "training samples by which the centre's batch-norm statistics are rebuilt before it is evaluated, or all (default 2048)",
		Kind: Text, Use: Preset | Full | Axis | Logged, Check: rebuilds, Words: func() []string { return []string{"2048", "all"} }})
	OnLoss = add(Option{Name: "on-loss", Doc: "when a worker dies its members: reseed, rollback or shrink",
		Kind: Text, Use: Preset | Again | Logged, Default: string(coordinator.OnLossReseed),
		Choices: texts(coordinator.LossPolicies),
		at:      func(o *Options) any { return &o.OnLoss }, in: func(c *event.Config) any { return &c.OnLoss }})
	OnTrouble = add(Option{Name: "on-trouble",
		Doc: "when a block is not finite, the disk is full or workers disagree: wait, stop, or back to the last good " +
			"checkpoint (default: wait in the workbench, else stop)",
		Kind: Text, Use: Preset | Again | Logged,
		Choices: texts(coordinator.TroublePolicies),
		at:      func(o *Options) any { return &o.OnTrouble }, in: func(c *event.Config) any { return &c.OnTrouble }})
	OnAlert = add(Option{Name: "on-alert",
		Doc:  "shell `command` that gets each warning and error as a line of JSON, for instance to send it somewhere; it is not recorded",
		Kind: Text, Use: Again, Check: runs, Words: func() []string { return []string{"cat >>alerts.jsonl"} }})
	Checkpoints = add(Option{Name: "checkpoints",
		Doc:  "checkpoints that stay to branch from: the newest two, and older ones at doubling distances (default 16)",
		Kind: Whole, Use: Preset | Again | Logged, Above: atLeastTwo, Most: 1024, Check: two})
	Init = add(Option{Name: "init", Doc: "start from the parameters in this .safetensors file",
		Kind: Text,
		at:   func(o *Options) any { return &o.Init }})
	Rename = add(Option{
		Name:  "rename",
		Doc:   "names in the file of --init and ours, as FROM=TO, several with commas: a tensor, or all of a layer",
		Kind:  Text,
		Check: renames,
		Words: func() []string { return []string{"features.0=conv1"} },
	})
	Probe = add(Option{Name: "probe", Doc: "rounds between probes of the centre (default: about 5% of the work)",
		Kind: Count, Use: Preset | Logged,
		at: func(o *Options) any { return &o.Probe }, in: func(c *event.Config) any { return &c.Probe }})
	Evaluate = add(Option{Name: "evaluate", Doc: "rounds between test evaluations (default: each epoch)",
		Kind: Count, Use: Preset | Logged,
		at: func(o *Options) any { return &o.Evaluate }, in: func(c *event.Config) any { return &c.Evaluate }})
)

const (
	atLeastOne = "give 1 or more"
	atLeastTwo = "give 2 or more"
	ofEachRun  = "workers of each run (with --listen)"
)

func algorithms() (out []string) {
	for _, a := range catalog.All() {
		out = append(out, a.Name)
	}
	return out
}

func texts[T ~string](list []T) (out []string) {
	for _, x := range list {
		out = append(out, string(x))
	}
	return out
}

func augmentations() []string {
	return []string{"pad=4", "flip", "pad=4,flip", "reflect=2,alternate", "none"}
}

func augments(text string) error {
	_, err := data.ParseAugment(text)
	return err
}

func tabulates(text string) error {
	_, err := data.ParseTable(text)
	return err
}

func weighs(text string) error {
	_, err := data.ParseWeights(text)
	return err
}

// Held is the validation split that a text asks for: a share below 1, or a number of samples; ok is false where it asks
// for none in particular.
func Held(text string) (split float64, ok bool) {
	x, err := strconv.ParseFloat(text, 64)
	return x, err == nil && x >= 0 && (x < 1 || x == math.Trunc(x) && x < 1<<31)
}

func holds(text string) error {
	if _, ok := Held(text); !ok {
		return usererr.Errorf("validation = %s: give a share below 1, or a whole number of samples", text)
	}
	return nil
}

// EverySample is what Rebuilt says of all.
const EverySample = math.MaxInt

// Rebuilt is how many samples a text asks for; 0 for none in particular.
func Rebuilt(text string) int {
	if text == "all" {
		return EverySample
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0
	}
	return n
}

func rebuilds(text string) error {
	if Rebuilt(text) == 0 {
		return usererr.Errorf("rebuild = %s: give a number of samples from 1 on, or all", text)
	}
	return nil
}

func two(text string) error {
	if n, err := strconv.Atoi(text); err != nil || n < 2 {
		return usererr.Errorf("checkpoints = %s: %s, since a run in trouble goes back to one", text, atLeastTwo)
	}
	return nil
}

func targets() []string {
	return []string{"loss=0.1", "test_loss=0.1", "test_error=2.8", "fitness=-0.1"}
}

func aims(text string) error {
	_, _, err := coordinator.Target(text)
	return err
}

func lasting(text string) error {
	if x, err := strconv.ParseFloat(text, 64); err != nil || !(x > 0) || math.IsInf(x, 0) {
		return usererr.Errorf("epochs = %s must be a number above 0", text)
	}
	return nil
}

func lasts(text string) error {
	seconds := Span.zero().(*float64)
	if err := Span.read(text, seconds); err != nil || *seconds < 0 {
		return usererr.Errorf("a run for %g seconds is no run: give a duration such as 30s", *seconds)
	}
	return nil
}
