package host

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"brood/models"
	"brood/models/engine"
	"brood/models/objective"
	"brood/models/subprocess"
	"brood/models/usererr"
	"brood/optim"
	"brood/optim/catalog"
	"brood/runtime/event"
	"brood/runtime/modelfile"
	"brood/runtime/option"
	"brood/runtime/worker"
)

// A run that maximises an objective has parameters but no layers, and seeds instead of samples. Its engine evaluates
// candidates with a program or a Go function. The session records the identity of the program, but no code starts a
// program from the record: sessions and coordinators are untrusted, so only the owner of the machine chooses a program.

// asObjective returns o with its command as an objective, whose parameter spec is that of the session.
func (o *Own) asObjective() *Own {
	return &Own{Objective: &objective.Objective{Command: o.command}}
}

// ownModel returns the model that the options define themselves: the graph or the objective of a Go program (o.Own),
// the objective of the options objective and params, the program of the option program, or a built-in objective. It
// returns nil if there is none, and an error if several are given or one is incomplete.
func ownModel(o Options) (*Own, error) {
	own, _ := o.Own.(*Own)
	if own, err := builtInModel(o, own); own != nil || err != nil {
		return own, err
	}
	text, params, trained := option.Objective.Text(o), option.Params.Text(o), option.Program.Text(o)
	switch {
	case text == "" && params == "" && trained == "":
		return own, nil
	case own != nil:
		return nil, usererr.Errorf("the program defines its own model: omit objective, params and program")
	case trained != "" && (text != "" || params != ""):
		return nil, usererr.Errorf("program %s: a program that trains its own model describes itself: omit objective and "+
			"params", trained)
	case trained != "":
		own, err := Program(trained)
		if err != nil {
			return nil, err
		}
		ctx, stop := interruptible()
		defer stop()
		return own.asProgram(ctx, option.Device.Text(o))
	case text == "":
		return nil, usererr.Errorf("params = %s: parameters need an objective: give its program too, such as --objective "+
			"./program", params)
	}
	own, err := Program(text)
	if err != nil {
		return nil, err
	}
	own = own.asObjective()
	if params != "" {
		own.Objective.Spec, err = objective.ParseSpec(params)
		return own, err
	}
	ctx, stop := interruptible()
	defer stop()
	if own.Objective.Spec, err = objective.RequestSpec(ctx, own.Objective.Command); err != nil {
		return nil, usererr.Errorf("objective %s: %w", text, err)
	}
	return own, nil
}

// interruptible returns a context that an interrupt of this process cancels, so that a program that is being started
// ends with it. Call stop to have interrupts end this process again.
func interruptible() (ctx context.Context, stop context.CancelFunc) {
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
}

// Maximises reports whether the run maximises an objective. o may be nil.
func (o *Own) Maximises() bool { return o != nil && o.Objective != nil }

// objectiveModel returns the model of the objective, which has parameters only, and the text that a session records.
func (o *Own) objectiveModel() (*models.Model, string, error) {
	if err := o.Objective.Check(); err != nil {
		return nil, "", err
	}
	m, err := o.Objective.Spec.Model()
	if err != nil {
		return nil, "", err
	}
	text, err := o.Objective.Text()
	return m, text, err
}

// objectiveName returns the name of the objective in a session: its command line, each path reduced to its last
// element.
func (o *Own) objectiveName() string {
	switch {
	case o.builtIn != "":
		return o.builtIn
	case len(o.Objective.Command) == 0:
		return "a function of a Go program"
	}
	return subprocess.Name(o.Objective.Command)
}

// completed returns o as the session needs it: a command becomes a program or an objective, an objective without
// parameters gets those of the session, and a session with a built-in objective gets that. o itself does not change. at
// is the device that a program computes on.
func (o *Own) completed(c event.Config, at string) (*Own, error) {
	if c.BuiltIn() != "" {
		return o.recordedBuiltIn(c)
	}
	if o != nil && o.command != nil && !o.External() {
		if c.Program != "" {
			ctx, stop := interruptible()
			defer stop()
			return o.asProgram(ctx, at)
		}
		o = o.asObjective()
	}
	if !o.Maximises() || c.Objective == "" || len(o.Objective.Spec.Params) > 0 {
		return o, nil
	}
	with, own := *o.Objective, *o
	var err error
	if with.Spec, err = objective.ReadSpec([]byte(c.ModelSpec)); err != nil {
		return nil, fmt.Errorf("read the parameters of the session: %w", err)
	}
	own.Objective = &with
	return &own, nil
}

// recordedObjective returns the model of a session that was recorded on this objective. It returns an error if the
// session has no objective, if o has none, or if the two differ; the error names the first difference.
func (o *Own) recordedObjective(c event.Config) (*models.Model, error) {
	switch {
	case c.Objective == "":
		return nil, fmt.Errorf("the session trains the model %s without a program or an objective: omit --program and "+
			"--objective", c.Model)
	case !o.Maximises():
		return nil, fmt.Errorf("the session maximises %s, which no session starts by itself: give the program again, with "+
			"--objective; you decide what runs on your machine (docs/objectives.md)", c.Objective)
	}
	m, text, err := o.objectiveModel()
	if err != nil {
		return nil, err
	}
	why := firstDifference(objective.What(text), objective.What(c.ModelSpec))
	if why != "" && o.builtIn != "" {
		return nil, fmt.Errorf("the session maximises another version of %s: this brood has %s; use the brood that recorded "+
			"it", c.Objective, strings.TrimPrefix(why, "it has "))
	}
	if why != "" {
		return nil, fmt.Errorf("the session maximises %s, and this objective is another: %s; give the program that was "+
			"recorded", c.Objective, why)
	}
	return m, nil
}

// firstDifference describes the first line of a program that differs from the recorded one; "" if all are equal.
func firstDifference(have, want []string) string {
	for i := range max(len(have), len(want)) {
		if i >= len(have) || i >= len(want) || have[i] != want[i] {
			return fmt.Sprintf("it has %s, where the session has %s", lineText(have, i), lineText(want, i))
		}
	}
	return ""
}

// lineText returns line i without its comment sign, or "nothing" if the line is empty or missing.
func lineText(lines []string, i int) string {
	if i >= len(lines) || lines[i] == "" {
		return "nothing"
	}
	return strings.TrimPrefix(lines[i], "# ")
}

// prepareObjective builds the model and the seeds of a run that maximises an objective, and reads the initial model
// file, if any. It returns an error if an option needs a model of layers, data or a device.
func (j *Job) prepareObjective(o Options) (err error) {
	why, where := "an objective has no model and no data: omit it (docs/objectives.md)", "in its own processes"
	switch {
	case j.own.simulates():
		why, where = "an environment has no model and no data: omit it (docs/environments.md)", "on the processor"
	case j.own.builtIn != "":
		why, where = "a function of the suite BBOB has no model and no data: omit it (docs/bbob.md)", "on the processor"
	}
	if err := rejectDataOptions(o, why, option.Validation, option.Rebuild); err != nil {
		return err
	}
	if at := option.Device.Text(o); at != "" && at != option.CPU {
		return usererr.Errorf("device %s: %s computes %s: omit the device", at, j.own.noun(), where)
	}
	if err := j.own.checkNeeds(j.Alg); err != nil {
		return err
	}
	if j.Net, j.Config.ModelSpec, err = j.own.objectiveModel(); err != nil {
		return err
	}
	j.Samples = j.own.Objective.Spec.Data()
	j.Data, j.Config.Data, j.Config.Objective = j.Samples.Name, j.Samples.Name, j.own.objectiveName()
	if o.Init != "" {
		return usererr.File(j.start(o.Init), o.Init, modelfile.Advice)
	}
	return nil
}

// checkNeeds returns an error if the algorithm needs gradients or whole-number weights, or trains no parameters: an
// objective provides none of these. The error lists the algorithms that are possible.
func (o *Own) checkNeeds(a *optim.Algorithm) error {
	if a.Needs&(optim.Gradients|optim.Whole) == 0 && a.Needs.Model() {
		return nil
	}
	var names []string
	for _, b := range catalog.All() {
		if b.Needs&(optim.Gradients|optim.Whole) == 0 && b.Needs.Model() {
			names = append(names, b.Name)
		}
	}
	why := "needs gradients, and " + o.noun() + " gives none"
	switch {
	case !a.Needs.Model():
		why = "trains no parameters, and so maximises nothing"
	case a.Needs&optim.Whole != 0:
		why = "moves weights that are whole numbers, and the parameters of " + o.noun() + " are none"
	}
	return usererr.Errorf("%s %s: choose one of %s", a.Name, why, strings.Join(names, ", "))
}

// oneSeed adds an edit that evaluates each candidate on one seed, unless the knob batch already has an edit.
func (j *Job) oneSeed() {
	if _, ok := j.Alg.Knob("batch"); !ok {
		return
	}
	for _, e := range j.Edits {
		if e.Knob == "batch" {
			return
		}
	}
	j.Edits = append(j.Edits, event.Edit{Algorithm: j.Alg.Name, Knob: "batch", Expr: "1", By: event.ByDefault})
}

// metricsOf returns the names of the metrics that the engine measures in addition to the fitness or the loss; nil for
// none.
func metricsOf(eng Engine) []string {
	if e, ok := eng.(interface{ Metrics() []string }); ok {
		return e.Metrics()
	}
	return nil
}

// noResult returns the error for initial parameters without a fitness: the program fails, or expects another number of
// parameters, or has no value at that point. It includes the cause if the engine's notes have one.
func (j *Job) noResult(eng Engine) error {
	why := "it has no fitness"
	if n, ok := eng.(worker.Noter); ok {
		for _, note := range n.Notes() {
			if _, first, ok := strings.Cut(note.Text, "the first: "); ok {
				why = first
			}
		}
	}
	return fmt.Errorf("the objective gives no result for the %d parameters that the run begins with: %s; fix the "+
		"program, or change the initial values (init and start of a SPEC.toml, or --init)", j.Net.Layout.Params, why)
}

// tryObjective evaluates the initial parameters of member 0 once, on the first training seed. It returns an error if
// there is no result.
func (j *Job) tryObjective(ctx context.Context, eng Engine) error {
	first := make([]float32, j.Net.Layout.Params)
	if err := j.init(ctx, 0, first); err != nil {
		return err
	}
	x, err := engine.Upload(ctx, eng, engine.Host{Rows: 1, Cols: len(first), F: first})
	if err != nil {
		return err
	}
	defer eng.Free(x)
	once := engine.Evaluate{
		X:       x,
		Rows:    engine.Rows(1),
		Batches: [][]int32{j.Samples.Train()[:1]},
		Loss:    make([]float64, 1),
		Correct: make([]int64, 1),
	}
	if err := done(ctx, eng, once); err != nil {
		return err
	}
	if math.IsNaN(once.Loss[0]) {
		return j.noResult(eng)
	}
	return nil
}
