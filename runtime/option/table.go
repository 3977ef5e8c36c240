package option

import (
	"math"
	goruntime "runtime"
	"strconv"
	"strings"
	"time"

	"brood/models"
	"brood/models/bbob"
	"brood/models/data"
	"brood/models/environment"
	"brood/models/usererr"
	"brood/optim/catalog"
	"brood/runtime/coordinator"
	"brood/runtime/event"
)

// All holds the options in the order of the table. Only tests replace it.
var All []*Option

// add appends an option to the table.
func add(x Option) *Option {
	All = append(All, &x)
	return &x
}

// To add an option, add a line here; only its consumer changes too, which reads the value with [Option.Text]. Without
// at the value is in Options.More, and without in the log records it in its More.
var (
	Algorithm = add(Option{Name: "algorithm", Doc: "algorithm (see brood algorithms)",
		Kind: Text, Use: Preset | Axis, Default: "dp-sgd", Words: algorithms,
		at: func(o *Options) any { return &o.Algorithm }})
	Model = add(Option{Name: "model",
		Doc: "model by name, a layer list in a .toml file, or one that follows the data: mlp: and the units of its hidden " +
			"layers, as in mlp:128,64, cnn, or linear (see brood models; default: mlp-small, or one that follows the data)",
		Kind: Text, Use: Preset | Full | Axis | Logged, Words: models.Names, Paths: true,
		at: func(o *Options) any { return &o.Model }, in: func(c *event.Config) any { return &c.Model }})
	Data = add(Option{Name: "data", Doc: "data set (see brood data list)",
		Kind: Text, Use: Preset | Full | Axis | Logged, Words: data.List, Paths: true,
		at: func(o *Options) any { return &o.Data }, in: func(c *event.Config) any { return &c.Data }})
	Label = add(Option{Name: "label",
		Doc: "column of a table with the labels, by name or counted from 1, or several with commas or as cls_*: one-hot " +
			"classes, or outputs (default: label, class or target, else the last)",
		Kind: Text, Use: Preset | Full | Logged})
	Table = add(Option{Name: "table",
		Doc: "format of a table, as words with commas: header or no-header for a first line with or without names, bytes " +
			"for numbers that are pixels from 0 to 255 (default: header detected, numbers standardised)",
		Kind: Text, Use: Preset | Full | Logged, Check: checkTable, Words: func() []string { return data.TableWords }})
	Features = add(Option{Name: "features",
		Doc:  "columns of a table that are features, by name or as x_*, with commas (default: all except the labels)",
		Kind: Text, Use: Preset | Full | Logged})
	Drop = add(Option{Name: "drop", Doc: "columns of a table to leave out, by name or as id_*, with commas",
		Kind: Text, Use: Preset | Full | Logged})
	Categories = add(Option{Name: "categories",
		Doc: "onehot: columns of text in a table are categories, a feature for each text that occurs twice or more and one " +
			"for all others",
		Kind: Text, Use: Preset | Full | Logged, Choices: []string{"onehot", "none"}})
	FillIn = add(Option{Name: "fill",
		Doc:  "mean: missing numbers of a table are the mean of their column in training, and one more feature marks them",
		Kind: Text, Use: Preset | Full | Logged, Choices: []string{"mean", "none"}})
	Resize = add(Option{Name: "resize",
		Doc: "pictures of any size are scaled to `SIDE` x SIDE pixels: 64 crops them to their central square first, " +
			"64,letterbox scales the whole picture, between black bars (default: all are of one size)",
		Kind: Text, Use: Preset | Full | Logged, Check: checkResize,
		Words: func() []string { return []string{"32", "64", "64,letterbox"} }})
	Objective = add(Option{Name: "objective",
		Doc: "`program` whose fitness is maximised, instead of a model and data (docs/objectives.md); it is not " +
			"recorded: give it again to resume the session",
		Docs: map[string]string{"fork": "`program` of a session that maximises one: a session never starts it by itself"},
		Kind: Text, Use: Again, Paths: true})
	Program = add(Option{Name: "program",
		Doc: "`program` that trains its own model on its own data, such as 'python3 train.py' (docs/programs.md); it is " +
			"not recorded: give it again to resume the session",
		Docs: map[string]string{"fork": "`program` of a session that has one: a session never starts it by itself"},
		Kind: Text, Use: Again, Paths: true})
	Params = add(Option{
		Name:  "params",
		Doc:   "parameters of the objective: their number, or a SPEC.toml with names, shapes, bounds and seeds",
		Kind:  Text,
		Paths: true,
	})
	Env = add(Option{
		Name:    "env",
		Doc:     "built-in `environment` that a policy learns to act in, instead of a model and data (docs/environments.md)",
		Kind:    Text,
		Use:     Preset | Logged,
		Choices: environment.Names(),
	})
	Policy = add(Option{
		Name:  "policy",
		Doc:   "policy that acts in the environment: linear, or mlp: and the units of each hidden layer (default mlp:16)",
		Kind:  Text,
		Use:   Preset | Logged,
		Check: checkPolicy,
		Words: func() []string { return []string{environment.Linear, "mlp:16", "mlp:64,64"} },
	})
	BBOB = add(Option{
		Name: "bbob",
		Doc:  "`function` of the benchmark suite BBOB, 1 to 24, that is minimised instead of training a model (docs/bbob.md)",
		Kind: Whole,
		Use:  Preset | Axis | Logged, Above: atLeastOne,
		Most: bbob.Functions,
	})
	Dimension = add(Option{
		Name: "dimension",
		Doc:  "parameters of the function of BBOB, 2 to 40 (default 5)",
		Kind: Whole,
		Use:  Preset | Axis | Logged, Above: atLeastTwo,
	})
	Instance = add(Option{
		Name: "instance",
		Doc:  "instance of the function of BBOB: the place of its optimum and its rotations (default 1)",
		Kind: Whole,
		Use:  Preset | Axis | Logged, Above: atLeastOne,
		Most: bbob.MaxInstance,
	})
	Members = add(Option{Name: "members",
		Doc:  "size of the population, or `auto`: enough to keep the threads busy, as far as memory allows",
		Kind: Population, Use: Preset | Full | Axis, Default: "4", Above: atLeastOne, Most: event.MaxMembers,
		at: func(o *Options) any { return &o.Members }})
	Workers = add(Option{Name: "workers", Doc: "workers that host the members, in this process",
		Docs: map[string]string{"serve": "workers in this process too (default 0)", "fork": "workers that host the members"},
		Kind: Whole, Use: Preset | Full | Axis | Again, Default: "1", Above: atLeastOne, Most: 1024,
		at: func(o *Options) any { return &o.Workers }})
	Threads = add(Option{Name: "threads", Doc: "threads in total over all workers (default: all cores)",
		Docs: map[string]string{"fork": "threads in total over all workers",
			"reproduce": "threads in total over all runs (default: all cores)"},
		Kind: Whole, Use: Again, Default: strconv.Itoa(goruntime.NumCPU()), Above: atLeastOne, Most: 1024,
		at: func(o *Options) any { return &o.Threads }})
	Device = add(Option{
		Name: "device",
		Doc: "device: cpu, gpu, or one that brood doctor lists; `cuda:0,bf16` uses its tensor cores, cpu,bf16 evaluates " +
			"candidates in bfloat16, and cpu,amx does so with the tiles of Intel AMX (default: cpu; a program chooses)",
		Kind:  Text,
		Use:   Again,
		Check: checkDevice,
		Words: devices,
		at:    func(o *Options) any { return &o.Device },
	})
	Wait = add(Option{Name: "wait", Doc: "start when this many workers have joined",
		Docs: map[string]string{"sweep": ofEachRun, "reproduce": ofEachRun},
		Kind: Whole, Use: Again | Joined, Most: 1024,
		at: func(o *Options) any { return &o.Wait }})
	MinWorkers = add(Option{Name: "min-workers", Doc: "wait while fewer workers than this can host members",
		Kind: Whole, Use: Again | Joined | Logged, Most: 1024,
		at: func(o *Options) any { return &o.MinWorkers }})
	Audit = add(Option{
		Name: "audit",
		Doc: "`share` of the rounds, from 0 to 1, in which another worker executes the part of a random one again and " +
			"compares all bits; also compares both ends of each frame (default 0)",
		Kind:  Number,
		Use:   Preset | Again | Logged,
		Check: checkAudit,
		Words: func() []string { return []string{"0.01", "0.1", "1"} },
		at:    func(o *Options) any { return &o.Audit },
	})
	Epochs = add(Option{Name: "epochs", Doc: "stop after this many passes over the data",
		Docs: map[string]string{"fork": "stop after this many epochs"},
		Kind: Number, Use: Preset | Full | Axis | Again | Ends | Logged, Above: "give a number above 0", Check: checkEpochs,
		at: func(o *Options) any { return &o.Limit.Epochs }, in: func(c *event.Config) any { return &c.Limit.Epochs }})
	Rounds = add(Option{Name: "rounds", Doc: "stop after this many rounds",
		Docs: map[string]string{"fork": "stop at this round"},
		Kind: Count, Use: Preset | Full | Axis | Again | Ends | Logged, Above: atLeastOne,
		at: func(o *Options) any { return &o.Limit.Rounds }, in: func(c *event.Config) any { return &c.Limit.Rounds }})
	For = add(Option{Name: "for", Doc: "stop after this time, such as 30s",
		Kind: Span, Use: Preset | Again | Ends | Logged, Above: "give a duration such as 30s", Check: checkFor,
		at: func(o *Options) any { return &o.Limit.Seconds }, in: func(c *event.Config) any { return &c.Limit.Seconds }})
	Deadline = add(Option{
		Name: "deadline",
		Doc: "save and end before this time, as after SIGTERM: a duration from the start such as 2h, a time such as 17:30, " +
			"or a date and time such as 2026-05-01T17:30; it is not recorded",
		Docs: map[string]string{"launch": "save and end before this time, as after SIGTERM, or none: " +
			"a duration such as 2h, 17:30, or 2026-05-01T17:30 (default: the end of the Slurm job)"},
		Kind:  Text,
		Use:   Again,
		Check: checkDeadline,
		Words: func() []string { return []string{"17:30", "2h"} },
	})
	Target = add(Option{Name: "target",
		Doc: "stop when a target is met: loss=0.1 of the centre, test_loss=0.1, test_error=2.8, test_bits=2, " +
			"test_hamming=1, test_rmse=5, test_r2=0.9, test_fitness=475 of an objective, or fitness=-0.1 of the best on " +
			"validation samples (the limit of a preset still applies)",
		Docs: map[string]string{"fork": "stop when a target is met"},
		Kind: Text, Use: Preset | Again | Ends | Logged, Check: checkTarget, Words: targets,
		at: func(o *Options) any { return &o.Limit.Target }, in: func(c *event.Config) any { return &c.Limit.Target }})
	Patience = add(Option{Name: "patience",
		Doc: "stop when this many evaluations in a row have not lowered the validation loss (the limit of a preset still " +
			"applies)",
		Kind: Whole, Use: Preset | Again | Ends | Logged, Above: atLeastOne, Most: 1 << 20,
		at: func(o *Options) any { return &o.Limit.Patience }, in: func(c *event.Config) any { return &c.Limit.Patience }})
	Seed = add(Option{Name: "seed", Doc: "seed of all randomness (default 1)",
		Docs: map[string]string{"sweep": "seed of the values that --trials draws (default 1)"},
		Kind: Count, Use: Preset | Logged,
		at: func(o *Options) any { return &o.Seed }, in: func(c *event.Config) any { return &c.Seed }})
	Augment = add(Option{Name: "augment",
		Doc:  "augmentation of training images: pad=4 or reflect=4, flip or alternate, both as in pad=4,flip, or none",
		Kind: Text, Use: Preset | Full | Logged, Check: checkAugment, Words: augmentations,
		at: func(o *Options) any { return &o.Augment }, in: func(c *event.Config) any { return &c.Augment }})
	ClassWeights = add(Option{Name: "class-weights",
		Doc: "weights of classes in the training loss: balanced, the inverse of their frequency, or NAME=WEIGHT with " +
			"commas between them (default: equal)",
		Kind: Text, Use: Preset | Full | Logged, Check: checkWeights,
		Words: func() []string { return []string{"none", data.Balanced} }})
	Validation = add(Option{Name: "validation",
		Doc: "training samples held out for selection, fitness and probes: a share such as 0.1, a number, or 0 (default: " +
			"a twelfth)",
		Kind: Text, Use: Preset | Full | Axis | Logged, Check: checkValidation,
		Words: func() []string { return []string{"0", "0.1", "10000"} }})
	SplitBy = add(Option{Name: "split-by",
		Doc: "column that divides a table into splits: time:COLUMN, the last rows are for tests and those before them for " +
			"validation, or group:COLUMN, rows of one value stay in one split (default: single rows, at random)",
		Kind: Text, Use: Preset | Full | Logged, Check: checkSplitBy,
		Words: func() []string { return []string{"time:date", "group:patient"} }})
	Rebuild = add(Option{Name: "rebuild",
		Doc:  "training samples that rebuild the centre's batch-norm statistics before an evaluation, or all (default 2048)",
		Kind: Text, Use: Preset | Full | Axis | Logged, Check: checkRebuild,
		Words: func() []string { return []string{"2048", "all"} }})
	OnLoss = add(Option{Name: "on-loss",
		Doc: "action when a worker dies: reseed its members, rollback the run, shrink the population, or mirror: continue " +
			"from a copy at another worker",
		Kind: Text, Use: Preset | Again | Logged, Default: string(coordinator.OnLossReseed),
		Choices: texts(coordinator.LossPolicies),
		at:      func(o *Options) any { return &o.OnLoss }, in: func(c *event.Config) any { return &c.OnLoss }})
	OnTrouble = add(Option{Name: "on-trouble",
		Doc: "action when a block is not finite, the disk is full or workers disagree: wait, stop, or back to the last " +
			"good checkpoint (default: wait in the workbench, else stop)",
		Kind: Text, Use: Preset | Again | Logged,
		Choices: texts(coordinator.TroublePolicies),
		at:      func(o *Options) any { return &o.OnTrouble }, in: func(c *event.Config) any { return &c.OnTrouble }})
	OnAlert = add(Option{Name: "on-alert",
		Doc:  "shell `command` that receives each warning and error as a line of JSON on standard input; it is not recorded",
		Kind: Text, Use: Again, Check: checkCommand, Words: func() []string { return []string{"cat >>alerts.jsonl"} }})
	Checkpoints = add(Option{Name: "checkpoints",
		Doc:  "checkpoints to retain for branching: the newest two, and older ones at doubling distances (default 16)",
		Kind: Whole, Use: Preset | Again | Logged, Above: atLeastTwo, Most: 1024, Check: checkCheckpoints})
	KeepLog = add(Option{
		Name: "keep-log",
		Doc: "remove the oldest records of the log: about this size stays, such as 2GB, or this time, such as 7d (default: " +
			"all)",
		Kind:  Text,
		Use:   Preset | Again | Logged,
		Check: checkKeepLog,
		Words: func() []string { return []string{"2GB", "7d"} },
	})
	Init = add(Option{Name: "init", Doc: "start from the parameters in this .safetensors file",
		Kind: Text,
		at:   func(o *Options) any { return &o.Init }})
	Rename = add(Option{
		Name:  "rename",
		Doc:   "rename a tensor, or all of a layer, of the file of --init: FROM=TO, several with commas",
		Kind:  Text,
		Check: checkRename,
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

func checkAugment(text string) error {
	_, err := data.ParseAugment(text)
	return err
}

func checkPolicy(text string) error {
	_, err := environment.ParsePolicy(text)
	return err
}

func checkTable(text string) error {
	_, err := data.ParseTable(text)
	return err
}

func checkResize(text string) error {
	_, err := data.ParseResize(text)
	return err
}

func checkSplitBy(text string) error {
	_, err := data.ParseSplitBy(text)
	return err
}

func checkWeights(text string) error {
	_, err := data.ParseWeights(text)
	return err
}

// ParseValidation parses a validation split: a share below 1, or a whole number of samples below 2^31. ok is false if
// text is neither.
func ParseValidation(text string) (split float64, ok bool) {
	x, err := strconv.ParseFloat(text, 64)
	return x, err == nil && x >= 0 && (x < 1 || x == math.Trunc(x) && x < 1<<31)
}

// ReadingOptions are the options of how data are read.
var ReadingOptions = []*Option{Label, Table, Features, Drop, Categories, FillIn, SplitBy, Resize}

// Reading returns how the options read data.
func (o Options) Reading() (r data.Reading, err error) {
	if r.Table, err = data.ParseTable(Table.Text(o)); err != nil {
		return r, err
	}
	r.Label, r.Features, r.Drop = Label.Text(o), Features.Text(o), Drop.Text(o)
	r.Categories, r.Fill = Categories.Text(o) == "onehot", FillIn.Text(o) == "mean"
	if r.Resize, err = data.ParseResize(Resize.Text(o)); err != nil {
		return r, err
	}
	r.SplitBy, err = data.ParseSplitBy(SplitBy.Text(o))
	return r, err
}

// HoldOut returns the set with the validation split of a text of the option validation; "" keeps the split of the set.
func HoldOut(set *data.Set, text string) (*data.Set, error) {
	split, ok := ParseValidation(text)
	if !ok {
		return set, nil
	}
	return set.WithValidation(split)
}

func checkValidation(text string) error {
	if _, ok := ParseValidation(text); !ok {
		return usererr.Errorf("validation = %s: give a share below 1, or a whole number of samples", text)
	}
	return nil
}

// EverySample is the result of [Rebuilt] for all samples.
const EverySample = math.MaxInt

// Rebuilt parses the number of samples of the option rebuild: [EverySample] for all, 0 if text is invalid.
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

func checkRebuild(text string) error {
	if Rebuilt(text) == 0 {
		return usererr.Errorf("rebuild = %s: give a number of samples, 1 or more, or all", text)
	}
	return nil
}

func checkCheckpoints(text string) error {
	if n, err := strconv.Atoi(text); err != nil || n < 2 {
		return usererr.Errorf("checkpoints = %s: %s, since a run in trouble returns to one", text, atLeastTwo)
	}
	return nil
}

// ParseKeepLog parses a value of the option keep-log: bytes, or a time. Exactly one of them is above 0; both are 0 for
// "".
func ParseKeepLog(text string) (bytes int64, age time.Duration, err error) {
	for _, u := range []struct {
		name  string
		bytes float64
	}{{"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}} {
		if n, ok := strings.CutSuffix(text, u.name); ok {
			x, err := strconv.ParseFloat(n, 64)
			if err != nil || !(x*u.bytes >= leastLog && x*u.bytes < 1<<60) {
				return 0, 0, usererr.Errorf("keep-log = %s: give 1MB or more, such as 2GB", text)
			}
			return int64(x * u.bytes), 0, nil
		}
	}
	if text == "" {
		return 0, 0, nil
	}
	switch age, err = ParseAge(text); {
	case err != nil || age <= 0:
		return 0, 0, usererr.Errorf("keep-log = %s: give a size such as 2GB, or a time such as 7d", text)
	case age < leastLogAge || age > mostLogAge:
		return 0, 0, usererr.Errorf("keep-log = %s: give 1m to 10000d, such as 7d", text)
	}
	return 0, age, nil
}

// Limits of the option keep-log.
const (
	leastLog    = 1e6
	leastLogAge = time.Minute
	mostLogAge  = 10000 * 24 * time.Hour // four times this is a Duration
)

// ParseAge parses a duration, which may be in days, such as 1.5d.
func ParseAge(text string) (time.Duration, error) {
	days, inDays := strings.CutSuffix(text, "d")
	if !inDays {
		return time.ParseDuration(text)
	}
	n, err := strconv.ParseFloat(days, 64)
	return time.Duration(n * 24 * float64(time.Hour)), err
}

func checkKeepLog(text string) error {
	_, _, err := ParseKeepLog(text)
	return err
}

func targets() []string {
	return []string{"loss=0.1", "test_loss=0.1", "test_error=2.8", "fitness=-0.1"}
}

func checkTarget(text string) error {
	_, _, err := coordinator.Target(text)
	return err
}

func checkEpochs(text string) error {
	if x, err := strconv.ParseFloat(text, 64); err != nil || !(x > 0) || math.IsInf(x, 0) {
		return usererr.Errorf("epochs = %s must be a number above 0", text)
	}
	return nil
}

func checkAudit(text string) error {
	if x, err := strconv.ParseFloat(text, 64); err != nil || !(x >= 0 && x <= 1) {
		return usererr.Errorf("audit = %s must be a share from 0 to 1", text)
	}
	return nil
}

func checkFor(text string) error {
	seconds := Span.zero().(*float64)
	if err := Span.parse(text, seconds); err != nil || *seconds < 0 {
		return usererr.Errorf("for = %g seconds is not above 0: give a duration such as 30s", *seconds)
	}
	return nil
}
