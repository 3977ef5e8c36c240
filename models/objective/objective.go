// Package objective evaluates candidates outside brood: in processes of the user's program, or with a Go function. Its
// Engine executes vector tasks with models/native; the fitness of a candidate comes from the objective. It imports
// models, their engines and noise.
//
//	o := objective.Objective{Spec: objective.Flat(10), Func: func(x []float32, seed uint64) (float64, error) { ... }}
//	e, err := objective.New(o, 2)
//	err = e.Do(ctx, engine.Candidates{...})
//
// The samples of such a run are seeds: the objective receives the sample id. A higher fitness is better; the loss of a
// candidate is minus its fitness. docs/objectives.md specifies the protocol byte by byte.
package objective

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"brood/models/subprocess"
)

// Func is an objective within this process. It returns the fitness of the parameters x, in the order of the spec's
// tensors and within their bounds, for a seed. x is valid until it returns. It is called concurrently. Sessions can be
// verified only if the result depends only on the arguments. An error or a fitness that is not finite counts as a
// missing result.
type Func func(x []float32, seed uint64) (fitness float64, err error)

// Measured is like Func but also writes metrics: one value for each of the objective's Metrics, in their order. metrics
// is valid until it returns. Values that are not finite are omitted from charts and tables.
type Measured func(x []float32, seed uint64, metrics []float64) (fitness float64, err error)

// Objective is the function that a run maximises. Exactly one of Func, Measured and Command is set.
type Objective struct {
	Spec     Spec
	Func     Func
	Measured Measured
	Metrics  []string // names of the metrics of Measured; a program declares its own
	// Function identifies Func or Measured in sessions, in one line; "" is a function of a Go program.
	Function string
	// Command is a program and its arguments. The program uses the protocol on its standard input and output.
	Command []string
}

// function returns the objective within this process; nil if it is a program.
func (o *Objective) function() Measured {
	if o.Func == nil {
		return o.Measured
	}
	return func(x []float32, seed uint64, _ []float64) (float64, error) { return o.Func(x, seed) }
}

// Check returns an error if the objective is incomplete or contradictory.
func (o *Objective) Check() error {
	count := 0
	for _, is := range []bool{o.Func != nil, o.Measured != nil, len(o.Command) > 0} {
		if is {
			count++
		}
	}
	if count != 1 {
		return errors.New("an objective is a function or a command: give one of them")
	}
	if len(o.Metrics) > 0 && o.Measured == nil {
		return errors.New("the objective has metrics and nothing that measures them: give Measured, or leave Metrics out")
	}
	if err := checkMetrics(o.Metrics); err != nil {
		return fmt.Errorf("objective: %w", err)
	}
	return o.Spec.check()
}

// Processes returns the number of concurrent evaluations of a worker with that many threads.
func (o *Objective) Processes(threads int) int {
	if o.Spec.Processes > 0 {
		return o.Spec.Processes
	}
	return max(1, threads)
}

// What returns the lines of a text returned by Text that identify the objective. It omits the timeout and the number of
// processes, which do not change the results and which old sessions do not record.
func What(text string) []string {
	return slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool {
		return strings.HasPrefix(line, "timeout = ") || strings.HasPrefix(line, "processes = ")
	})
}

// Text returns the description of the objective that sessions record: its spec, the words of its command, and the
// digests of those that are files. Objectives with equal What are considered the same.
func (o *Objective) Text() (string, error) {
	text, err := o.Spec.toTOML()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(text)
	if len(o.Command) == 0 {
		b.WriteString("# " + cmp.Or(o.Function, "a function of a Go program") + "\n")
	}
	words, err := subprocess.Identity(o.Command)
	if err != nil {
		return "", fmt.Errorf("objective: %w", err)
	}
	b.WriteString(words)
	return b.String(), nil
}
