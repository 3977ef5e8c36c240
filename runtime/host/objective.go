package host

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"brood/models"
	"brood/models/engine"
	"brood/models/objective"
	"brood/models/usererr"
	"brood/optim"
	"brood/optim/catalog"
	"brood/runtime/event"
	"brood/runtime/option"
	"brood/runtime/worker"
)

// A run that maximises an objective has parameters and no layers, seeds in place of samples, and an engine that asks a
// program, or a function, what candidates are worth. Its session records what the program was, and never how to start
// it: a session, and a coordinator, are data of others, and which program runs here its owner says.

// Program is the objective that a command line names, for a session that was recorded on it or a run that a worker
// joins. The parameters are the session's. An empty text gives nil, for sessions that have none.
func Program(text string) (*Own, error) {
	if text == "" {
		return nil, nil
	}
	words, err := objective.ParseCommand(text)
	if err != nil {
		return nil, err
	}
	return &Own{Objective: &objective.Objective{Command: words}}, nil
}

// seeds is what the samples of such a run are called, as [data.Seeds] has it.
const seeds = "seeds"

// owned is the model that options bring themselves: a Go program's, or the objective that they name.
func owned(o Options) (*Own, error) {
	own, _ := o.Own.(*Own)
	text, params := option.Objective.Text(o), option.Params.Text(o)
	switch {
	case text == "" && params == "":
		return own, nil
	case own != nil:
		return nil, usererr.Errorf("the program has a model of its own: leave objective and params out")
	case text == "":
		return nil, usererr.Errorf("params = %s are those of an objective: give the program too, such as --objective ./program", params)
	case params == "":
		return nil, usererr.Errorf("objective %s: how many parameters does it have? give --params N, or --params SPEC.toml", text)
	}
	own, err := Program(text)
	if err != nil {
		return nil, err
	}
	own.Objective.Spec, err = objective.ParseSpec(params)
	return own, err
}

// maximises says whether there is an objective.
func (o *Own) maximises() bool { return o != nil && o.Objective != nil }

// measured is the model of an objective, and what a session records of it.
func (o *Own) measured() (*models.Model, string, error) {
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

// objectiveName is what a session calls its objective.
func (o *Own) objectiveName() string {
	if len(o.Objective.Command) == 0 {
		return "a function of a Go program"
	}
	var words []string
	for _, w := range o.Objective.Command {
		words = append(words, filepath.Base(w))
	}
	return strings.Join(words, " ")
}

// completed is the objective with the session's parameters where it has none of its own.
func (o *Own) completed(c event.Config) (*Own, error) {
	if !o.maximises() || c.Objective == "" || len(o.Objective.Spec.Params) > 0 {
		return o, nil
	}
	with, own := *o.Objective, *o
	var err error
	if with.Spec, err = objective.ReadSpec([]byte(c.ModelSpec)); err != nil {
		return nil, fmt.Errorf("the session's parameters cannot be read: %w", err)
	}
	own.Objective = &with
	return &own, nil
}

// recalled is the model of a session of this objective, or a sentence that says what differs.
func (o *Own) recalled(c event.Config) (*models.Model, error) {
	switch {
	case c.Objective == "":
		return nil, fmt.Errorf("the session trains the model %s, and no objective: leave --objective out", c.Model)
	case !o.maximises():
		return nil, fmt.Errorf("the session maximises %s, which no session starts by itself: give the program again, with --objective; you decide what runs on your machine (docs/objectives.md)", c.Objective)
	}
	m, text, err := o.measured()
	if err != nil {
		return nil, err
	}
	have, want := objective.What(text), objective.What(c.ModelSpec)
	for i := range max(len(have), len(want)) {
		if i >= len(have) || i >= len(want) || have[i] != want[i] {
			return nil, fmt.Errorf("the session maximises %s, and this objective is another: it has %s, where the session has %s; give the program as it was then", c.Objective, at(have, i), at(want, i))
		}
	}
	return m, nil
}

// at is line i, as words.
func at(lines []string, i int) string {
	if i >= len(lines) || lines[i] == "" {
		return "nothing"
	}
	return strings.TrimPrefix(lines[i], "# ")
}

// prepareObjective builds the model and the seeds of a run that maximises an objective.
func (j *Job) prepareObjective(o Options) (err error) {
	for _, x := range []*option.Option{option.Model, option.Data, option.Label, option.Table, option.Augment, option.ClassWeights, option.Validation, option.Rebuild} {
		if text := x.Text(o); text != "" {
			return usererr.Errorf("%s = %s: an objective has no model and no data: leave it out (docs/objectives.md)", x.Name, text)
		}
	}
	if at := option.Device.Text(o); at != "" && at != option.CPU {
		return usererr.Errorf("device %s: an objective computes in processes of its own: leave the device out", at)
	}
	if err := ungraded(j.Alg); err != nil {
		return err
	}
	if j.Net, j.Config.ModelSpec, err = j.own.measured(); err != nil {
		return err
	}
	j.Samples = j.own.Objective.Spec.Data()
	j.Data, j.Config.Data, j.Config.Objective = j.Samples.Name, j.Samples.Name, j.own.objectiveName()
	if o.Init != "" {
		return usererr.File(j.start(o.Init, false), o.Init, giveModel)
	}
	return nil
}

// ungraded refuses an algorithm that asks for what an objective does not give.
func ungraded(a *optim.Algorithm) error {
	if a.Needs&(optim.Gradients|optim.Whole) == 0 && a.Needs.Model() {
		return nil
	}
	var names []string
	for _, b := range catalog.All() {
		if b.Needs&(optim.Gradients|optim.Whole) == 0 && b.Needs.Model() {
			names = append(names, b.Name)
		}
	}
	why := "needs gradients, and an objective gives none"
	switch {
	case !a.Needs.Model():
		why = "trains no parameters, and so maximises nothing"
	case a.Needs&optim.Whole != 0:
		why = "moves weights that are whole numbers, and the parameters of an objective are none"
	}
	return usererr.Errorf("%s %s: choose one of %s", a.Name, why, strings.Join(names, ", "))
}

// oneSeed is the edit by which candidates are measured on one seed each, where nobody says on how many.
func (j *Job) oneSeed() {
	if _, ok := j.Alg.Knob("batch"); !ok {
		return
	}
	for _, e := range j.Edits {
		if e.Knob == "batch" {
			return
		}
	}
	j.Edits = append(j.Edits, event.Edit{Algorithm: j.Alg.Name, Knob: "batch", Expr: "1", By: event.ByNobody})
}

// metricsOf are the names of what an engine measures beside the fitness.
func metricsOf(eng compute) []string {
	if e, ok := eng.(*objective.Engine); ok {
		return e.Metrics()
	}
	return nil
}

// noResult says that the parameters which a run begins with have no fitness: the program is broken, or takes another
// number of parameters, or the run has to begin elsewhere.
func (j *Job) noResult(eng compute) error {
	why := "it has no fitness"
	if n, ok := eng.(worker.Noter); ok {
		for _, note := range n.Notes() {
			if _, first, ok := strings.Cut(note.Text, "the first: "); ok {
				why = first
			}
		}
	}
	return fmt.Errorf("the objective gives no result for the %d parameters that the run begins with: %s; mend it, or begin elsewhere (init and start of a SPEC.toml, or --init)", j.Net.Layout.Params, why)
}

// tryObjective evaluates the initial parameters once, by one program. It returns an error if that has no result.
func (j *Job) tryObjective(ctx context.Context, eng compute) error {
	first := make([]float32, j.Net.Layout.Params)
	j.init(0, first)
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
