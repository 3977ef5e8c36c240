package host

import (
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"strings"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/graph"
	"brood/models/native"
	"brood/models/native/kernel"
	"brood/optim"
)

// compute is an engine that says what produces its bits (engine/twin/architecture), and what memory it holds
// once it has done some work, in bytes.
type compute interface {
	optim.Engine
	Kernels() string
	Room(engine.Work) int64
}

// engine makes the engine of the job, see newEngine. A run without a model has one that computes nothing.
func (j *Job) engine(kind string, threads int) (compute, error) {
	if j.bare() {
		return memory{}, nil
	}
	return newEngine(kind, j.Own, j.Net, j.Samples, threads)
}

// newEngine is the engine of a model, or of a graph of one's own. kind names the kernels of a recorded session; the empty kind is a
// person's choice by $BROOD_ENGINE (native or gorgonia) and $BROOD_CPU (avx512, avx2 or portable), and without one the native
// engine for every model that it has a plan for.
func newEngine(kind string, own *Own, net *models.Model, set *data.Set, threads int) (compute, error) {
	name, twin, asked, err := kernels(kind)
	if err != nil {
		return nil, err
	}
	switch {
	case own != nil && name == "native" && asked:
		return nil, fmt.Errorf("graph %s: gorgonia computes a graph of one's own: leave BROOD_ENGINE=native out", net.Name)
	case own != nil:
		return graph.NewOwn(own.Graph, set, threads)
	case name == "gorgonia":
		return graph.New(net, set, threads)
	}
	e, err := native.NewEngine(net, set, threads, twin)
	var uncovered *native.UncoveredError
	if errors.As(err, &uncovered) && !asked {
		return graph.New(net, set, threads)
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}

// kernels reads a recorded kind, or the environment; asked says that nothing else will do.
func kernels(kind string) (name string, twin kernel.Twin, asked bool, err error) {
	if kind == "" {
		switch name = os.Getenv("BROOD_ENGINE"); name {
		case "", "native", "gorgonia":
		default:
			return "", 0, false, fmt.Errorf("BROOD_ENGINE = %q is no engine; choose native or gorgonia", name)
		}
		twin, err = kernel.FromEnv()
		return name, twin, name != "", err
	}
	parts := strings.Split(kind, "/")
	if len(parts) != 3 || parts[2] != goruntime.GOARCH {
		return "", 0, true, fmt.Errorf("the session was computed by kernels %s and this machine has %s: the bits may differ, so it is not executed here", kind, Kernels())
	}
	if name = parts[0]; name != "native" {
		return name, 0, true, nil
	}
	if twin, err = kernel.Choose(parts[1]); err != nil {
		err = fmt.Errorf("the session was computed by kernels %s: %w", kind, err)
	}
	return name, twin, true, err
}

// Available names what a new run computes with here, for models that the native engine covers; it fails where the
// environment asks for what there is not.
func Available() (string, error) {
	name, twin, _, err := kernels("")
	switch {
	case err != nil:
		return "", err
	case name == "gorgonia":
		return (*graph.Engine)(nil).Kernels(), nil
	}
	return "native/" + twin.String() + "/" + goruntime.GOARCH, nil
}

// Kernels is Available, or its error, as text.
func Kernels() string {
	text, err := Available()
	if err != nil {
		return err.Error()
	}
	return text
}
