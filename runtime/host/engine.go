package host

import (
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"slices"
	"strings"

	"brood/models"
	"brood/models/arith"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/graph"
	"brood/models/native"
	"brood/models/native/kernel"
	"brood/optim"
	"brood/runtime/verify"
)

// compute is an engine that says what produces its bits (an arithmetic, or engine/library/architecture), and what memory it holds
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
// person's choice by $BROOD_ENGINE (native or gorgonia), and without one the native engine for every model that it has a plan
// for. Which twin the native engine takes, of those that hold its arithmetic, is $BROOD_CPU's choice (avx512, avx2 or portable).
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
	if kind == arith.Name {
		twin, err = kernel.FromEnv()
		return "native", twin, true, err
	}
	parts := strings.Split(kind, "/")
	if len(parts) != 3 || parts[0] == "native" || parts[2] != goruntime.GOARCH {
		return "", 0, true, fmt.Errorf("the session was computed by kernels %s and this machine has %s: the bits may differ, so it is not executed here", kind, Kernels())
	}
	return parts[0], 0, true, nil
}

// recorded is the kind that computes a session or a file whose kernels were kind, as they are named today. Before f32/1 each twin had
// a name: that of avx512 had the same bits, that of avx2 for models without convolutions, and that of portable never.
func recorded(kind string, net *models.Model) (string, error) {
	twin, old := strings.CutPrefix(kind, "native/")
	why := "are not known here"
	switch {
	case !old:
		return kind, nil
	case twin == "avx512/amd64" || twin == "avx2/amd64" && !convolves(net):
		return arith.Name, nil
	case twin == "avx2/amd64":
		why = "added up the gradients of convolutions in another order than " + arith.Name + ", the arithmetic of this brood"
	case strings.HasPrefix(twin, "portable/"):
		why = "rounded each product before it was added, as " + arith.Name + ", the arithmetic of this brood, does not"
	}
	return "", fmt.Errorf("the session was computed by kernels %s, which %s: execute it with the brood that recorded it; brood replay shows what it holds", kind, why)
}

func convolves(net *models.Model) bool {
	return slices.ContainsFunc(net.Layers, func(l models.Layer) bool { return l.Kind == models.Conv })
}

// older adds to a mismatch what else may be behind it where the session's kernels are of before f32/1.
func older(kind string, err error) error {
	var m *verify.MismatchError
	if !strings.HasPrefix(kind, "native/") || !errors.As(err, &m) {
		return err
	}
	return fmt.Errorf("%w; kernels %s, which computed it, are of before %s: products of low rank (avx2) and the lengths of clipped gradients (a last bit) were added up in another order, "+
		"which only the brood that recorded it has", err, kind, arith.Name)
}

// Available names what a new run computes with here, for models that the native engine covers; it fails where the
// environment asks for what there is not.
func Available() (string, error) {
	name, _, _, err := kernels("")
	switch {
	case err != nil:
		return "", err
	case name == "gorgonia":
		return (*graph.Engine)(nil).Kernels(), nil
	}
	return arith.Name, nil
}

// Kernels is Available, or its error, as text.
func Kernels() string {
	text, err := Available()
	if err != nil {
		return err.Error()
	}
	return text
}
