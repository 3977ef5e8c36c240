package host

import (
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"strings"

	"brood/models"
	"brood/models/data"
	"brood/models/graph"
	"brood/models/native"
	"brood/models/native/kernel"
	"brood/optim"
)

// compute is an engine that says what produces its bits (engine/twin/architecture), and what memory it takes for
// gradients on batches of the one size and evaluations on batches of the other, 0 for none.
type compute interface {
	optim.Engine
	Kernels() string
	Bytes(gradients, scores int) int64
}

// newEngine makes the engine for a model. kind names the kernels of a recorded session; the empty kind is a person's
// choice by $BROOD_ENGINE (native or gorgonia) and $BROOD_CPU (avx512, avx2 or portable), and without one the native engine for
// every model that it has a plan for. A run without a model has an engine that computes nothing.
func newEngine(kind string, m *models.Model, d *data.Set, threads int) (compute, error) {
	if len(m.Layers) == 0 {
		return memory{}, nil
	}
	name, twin, asked, err := kernels(kind)
	if err != nil {
		return nil, err
	}
	if name == "gorgonia" {
		return graph.New(m, d, threads)
	}
	e, err := native.NewEngine(m, d, threads, twin)
	var uncovered *native.UncoveredError
	if errors.As(err, &uncovered) && !asked {
		return graph.New(m, d, threads)
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

// Kernels names what a new run computes with here, for models that the native engine covers.
func Kernels() string {
	name, twin, _, err := kernels("")
	switch {
	case err != nil:
		return err.Error()
	case name == "gorgonia":
		return (*graph.Engine)(nil).Kernels()
	}
	return "native/" + twin.String() + "/" + goruntime.GOARCH
}
