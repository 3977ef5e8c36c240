package host

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"brood/models/engine"
	"brood/models/noise"
	"brood/models/program"
	"brood/models/subprocess"
	"brood/models/usererr"
	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/modelfile"
	"brood/runtime/option"
)

// A run can train a model that a program of the user holds, with its data. The program describes both, computes
// gradients and evaluations, and draws the initial values; see package program. As with an objective, the session
// records the identity of the program, but no code starts a program from the record.

// Program returns an own model that runs the command line text, for a recorded session or for a worker that joins a
// run. The session decides whether the program trains a model or computes an objective, see [Own.completed]. If text is
// empty, it returns nil, for sessions without a program.
func Program(text string) (*Own, error) {
	if text == "" {
		return nil, nil
	}
	words, err := subprocess.ParseCommand(option.Program.Name, text)
	if err != nil {
		return nil, err
	}
	return &Own{command: words}, nil
}

// JoiningProgram returns an own model for a worker that joins runs on the device at: objective and text are the command
// lines of its options --objective and --program, of which at most one is given. A program that trains a model is
// started, since its description decides which runs it may join.
func JoiningProgram(ctx context.Context, objective, text, at string) (*Own, error) {
	if err := checkOneProgram(objective, text); err != nil {
		return nil, err
	}
	own, err := Program(cmp.Or(objective, text))
	if err != nil || own == nil {
		return nil, err
	}
	if objective != "" {
		return own.asObjective(), nil
	}
	return own.asProgram(ctx, at)
}

// asProgram returns o with its command opened as a program that trains a model on device at.
func (o *Own) asProgram(ctx context.Context, at string) (*Own, error) {
	at, err := ProgramDevice(at)
	if err != nil {
		return nil, err
	}
	p, err := program.Open(ctx, o.command, at)
	if err != nil {
		return nil, err
	}
	return &Own{Program: p}, nil
}

// ProgramDevice returns the device of a program for a value of the option device: cpu, cuda or cuda:N as torch names
// them; "" leaves it to the program.
func ProgramDevice(at string) (string, error) {
	name, number, _ := strings.Cut(at, ":")
	if name == "gpu" {
		name = "cuda"
	}
	if at != "" && name != option.CPU && name != "cuda" || strings.Contains(at, ",") {
		return "", usererr.Errorf("device %s: a program computes on cpu, gpu or cuda:N, in the arithmetic that it chooses",
			at)
	}
	if number != "" {
		name += ":" + number
	}
	return name, nil
}

// checkOneProgram rejects a command line with an objective and a program.
func checkOneProgram(objective, text string) error {
	if objective != "" && text != "" {
		return usererr.Errorf("--objective and --program are two programs: give one of them")
	}
	return nil
}

// resumedProgram returns the own model of a session that is resumed or forked with these options; see [Program].
func resumedProgram(o Options) (*Own, error) {
	objective, text := option.Objective.Text(o), option.Program.Text(o)
	if err := checkOneProgram(objective, text); err != nil {
		return nil, err
	}
	return Program(cmp.Or(objective, text))
}

// trains reports whether a program of the user trains its own model. o may be nil.
func (o *Own) trains() bool { return o != nil && o.Program != nil }

// External reports whether a program or a function of the user computes the model or the objective, on its own samples.
// o may be nil.
func (o *Own) External() bool { return o.trains() || o.Maximises() }

// prepareProgram builds the model and the samples of a run whose program trains its own model. It returns an error if
// an option is about a model or data that brood reads itself.
func (j *Job) prepareProgram(o Options) (err error) {
	const why = "the program has its own model and data: omit it (docs/programs.md)"
	if err := rejectDataOptions(o, why); err != nil {
		return err
	}
	if err := checkProgramNeeds(j.Alg); err != nil {
		return err
	}
	p := j.own.Program
	ctx, stop := interruptible()
	defer stop()
	if err := p.Warm(ctx, min(p.Processes(o.Threads), max(1, o.Members))); err != nil {
		return err
	}
	if j.Net, err = p.Model(); err != nil {
		return err
	}
	if j.Samples, err = option.HoldOut(p.Data(), option.Validation.Text(o)); err != nil {
		return err
	}
	j.Config.ModelSpec, j.Config.Program, j.Config.Loss = p.Text(), p.Name(), lossOf(j.Net)
	j.Data, j.Config.Data = j.Samples.Name, j.Samples.Name
	if o.Init != "" {
		return usererr.File(j.start(o.Init), o.Init, modelfile.Advice)
	}
	return nil
}

// programOptimiser returns the edit that has the program's own optimiser take the steps, if the program brings one, the
// algorithm can use it, and no edit chooses an optimiser.
func (j *Job) programOptimiser() []event.Edit {
	k, ok := j.Alg.Knob("optimiser")
	chosen := slices.ContainsFunc(j.Edits, func(e event.Edit) bool { return e.Knob == k.Name })
	if !ok || chosen || j.Net.Layout.State == 0 || !slices.Contains(k.Choices, engine.Program) {
		return nil
	}
	return []event.Edit{{Algorithm: j.Alg.Name, Knob: k.Name, Expr: engine.Program, By: event.ByDefault}}
}

// rejectDataOptions returns an error, with the reason why, if an option is set that is about a model or data that brood
// reads itself, or one of the options also.
func rejectDataOptions(o Options, why string, also ...*option.Option) error {
	for _, x := range append([]*option.Option{
		option.Model,
		option.Data,
		option.Augment,
		option.ClassWeights,
	}, slices.Concat(option.ReadingOptions, also)...) {
		if text := x.Text(o); text != "" {
			return usererr.Errorf("%s = %s: %s", x.Name, text, why)
		}
	}
	return nil
}

// checkProgramNeeds returns an error if the algorithm cannot train the model of a program.
func checkProgramNeeds(a *optim.Algorithm) error {
	switch {
	case !a.Needs.Model():
		return usererr.Errorf("%s trains no parameters: choose another algorithm (see brood algorithms)", a.Name)
	case a.Needs&optim.Whole != 0:
		return usererr.Errorf("%s moves weights that are whole numbers, and those of a program are not: choose another "+
			"algorithm (see brood algorithms)", a.Name)
	}
	return nil
}

// recordedProgram returns an error if the session was recorded with another program.
func (o *Own) recordedProgram(c event.Config) error {
	switch {
	case c.Program == "":
		return fmt.Errorf("the session trains %s, and no program: omit --program", c.ModelName())
	case !o.trains():
		return fmt.Errorf("the session trains the model of %s, which no session starts by itself: give the program again, "+
			"with --program; you decide what runs on your machine (docs/programs.md)", c.Program)
	}
	if why := firstDifference(strings.Split(o.Program.Text(), "\n"), strings.Split(c.ModelSpec, "\n")); why != "" {
		return fmt.Errorf("the session trains the model of %s, and this program is another: %s; give the program that was "+
			"recorded", c.Program, why)
	}
	return nil
}

// sameKernels returns an error if the program computes with another library or device than the session.
func (o *Own) sameKernels(c event.Config) error {
	if have := o.Program.Kernels(); have != c.Kernels {
		return fmt.Errorf("the session was computed by %s, and the program computes here with %s: the bits may differ, so "+
			"it is not executed here", computedBy(c.Kernels), computedBy(have))
	}
	return nil
}

// computedBy returns the library and the device in the kernels of a program.
func computedBy(kernels string) string {
	if part := strings.SplitN(kernels, "/", 4); len(part) == 4 && part[0] == "program" {
		device, _, _ := strings.Cut(part[3], "+")
		return part[2] + " on " + device
	}
	return kernels
}

// programKey returns the random key of a member's initial values.
func programKey(seed uint64, member uint32) noise.Key {
	return noise.Key{Seed: seed, Purpose: noise.Init, Member: member}
}

// initialStats returns the initial batch-norm statistics of a run; nil means those of a model that has seen no batch.
func (j *Job) initialStats() ([]float32, error) {
	if j.stats != nil || !j.own.trains() || j.Net.Layout.Stats == 0 {
		return j.stats, nil
	}
	stats := make([]float32, j.Net.Layout.Stats)
	return stats, j.own.Program.Init(context.Background(), programKey(j.Config.Seed, 0), nil, stats)
}

// ProgramMismatch explains why a worker with the kernels has cannot join a run whose program computes with kernels
// kind.
func ProgramMismatch(kind, name string, has []string) string {
	for _, k := range has {
		mine, theirs := strings.SplitN(k, "/", 3), strings.SplitN(kind, "/", 3)
		switch {
		case mine[0] != "program":
		case len(mine) == 3 && len(theirs) == 3 && mine[1] == theirs[1]:
			return fmt.Sprintf("the program of this run computes with %s, and yours with %s: the bits may differ; join from "+
				"a machine of the same kind", computedBy(kind), computedBy(k))
		default:
			return fmt.Sprintf("this run trains the model of %s, and your program is another, or has other files or data: "+
				"give the worker the same ones", name)
		}
	}
	return fmt.Sprintf("this run trains the model of %s, which this worker does not have: start it with brood worker "+
		"--program PROGRAM", name)
}
