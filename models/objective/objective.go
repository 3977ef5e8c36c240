// Package objective evaluates candidates outside brood: in the processes of a person's own program, or by a Go
// function. Engine is an engine as the others are: the vector tasks are those of models/native, and what a candidate's
// parameters score comes from the objective. It imports models, their engines and noise.
//
//	o := objective.Objective{Spec: objective.Flat(10), Func: func(x []float32, seed uint64) (float64, error) { ... }}
//	e, err := objective.New(o, 2)
//	err = e.Do(ctx, engine.Candidates{...})
//
// A sample of such a run is a seed: its id is what the objective is given. Fitness is higher the better; the loss of a
// candidate is minus its fitness. docs/objectives.md has the protocol byte for byte.
package objective

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zeebo/blake3"

	"brood/models/usererr"
)

// Func is an objective within this process: the fitness of parameters, in the order of the spec's tensors and within
// their bounds, under a seed. x is valid until it returns. It is called from several goroutines at once, and must
// depend on its arguments alone if sessions are to verify. An error, or a fitness that is not finite, is a missing
// result.
type Func func(x []float32, seed uint64) (fitness float64, err error)

// Measured is a Func that measures more than the fitness: it writes a value for each of the objective's Metrics, in
// their order. metrics is valid until it returns. A value that is not finite is left out of charts and tables.
type Measured func(x []float32, seed uint64, metrics []float64) (fitness float64, err error)

// Objective is what a run maximises. One of Func, Measured and Command is set.
type Objective struct {
	Spec     Spec
	Func     Func
	Measured Measured
	Metrics  []string // names of what Measured writes; a program declares its own
	// Command is a program and its arguments, which speaks the protocol on its standard input and output.
	Command []string
}

// function is the objective within this process; nil where it is a program.
func (o *Objective) function() Measured {
	if o.Func == nil {
		return o.Measured
	}
	return func(x []float32, seed uint64, _ []float64) (float64, error) { return o.Func(x, seed) }
}

// Check says what is missing.
func (o *Objective) Check() error {
	given := 0
	for _, is := range []bool{o.Func != nil, o.Measured != nil, len(o.Command) > 0} {
		if is {
			given++
		}
	}
	if given != 1 {
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

// Processes is how many evaluations a worker of so many threads makes at once.
func (o *Objective) Processes(threads int) int {
	if o.Spec.Processes > 0 {
		return o.Spec.Processes
	}
	return max(1, threads)
}

// ParseCommand is the words of a command line: the path of a program that may have spaces in it, or words apart from
// each other. Words that are files become absolute, so that processes are the same wherever they are started from.
func ParseCommand(text string) ([]string, error) {
	words := strings.Fields(text)
	if isFile(text) {
		words = []string{text}
	}
	if len(words) == 0 {
		return nil, usererr.Errorf("the objective is empty: give a program, such as --objective ./program")
	}
	for i, w := range words {
		if !isFile(w) || i == 0 && !strings.ContainsRune(w, filepath.Separator) {
			continue
		}
		path, err := filepath.Abs(w)
		if err != nil {
			return nil, err
		}
		words[i] = path
	}
	if _, err := exec.LookPath(words[0]); err != nil {
		return nil, fmt.Errorf("objective %s cannot be started: %w; give the path of a program that may be executed, or a command such as \"python3 FILE.py\"", words[0], errors.Unwrap(err))
	}
	return words, nil
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}

// What is the lines of a text, as Text writes it, that say what is evaluated. How long one waits for it, and how many
// processes there are, makes no other objective: sessions of before have neither.
func What(text string) []string {
	return slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool {
		return strings.HasPrefix(line, "timeout = ") || strings.HasPrefix(line, "processes = ")
	})
}

// Text describes the objective, which sessions record: its spec, and of its command the names of what is not a file and
// the digests of what is. Objectives of which What is equal are taken to be the same.
func (o *Objective) Text() (string, error) {
	text, err := o.Spec.text()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(text)
	if len(o.Command) == 0 {
		b.WriteString("# a function of a Go program\n")
	}
	for _, w := range o.Command {
		if !filepath.IsAbs(w) || !isFile(w) {
			fmt.Fprintf(&b, "# word %s\n", w)
			continue
		}
		f, err := os.Open(w)
		if err != nil {
			return "", fmt.Errorf("objective: %w", err)
		}
		h := blake3.New()
		_, err = io.Copy(h, f)
		if f.Close(); err != nil {
			return "", fmt.Errorf("objective: %w", err)
		}
		fmt.Fprintf(&b, "# file %s blake3:%x\n", filepath.Base(w), h.Sum(nil))
	}
	return b.String(), nil
}
