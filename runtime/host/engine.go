package host

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"brood/models"
	"brood/models/arith"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/gpu"
	"brood/models/graph"
	"brood/models/native"
	"brood/models/native/kernel"
	"brood/models/objective"
	"brood/optim"
	"brood/runtime/option"
	"brood/runtime/verify"
	"brood/runtime/worker"
)

// compute is an engine that says what produces its bits (an arithmetic, or engine/library/architecture), and what
// memory it holds once it has done some work, in bytes.
type compute interface {
	optim.Engine
	Kernels() string
	Room(engine.Work) int64
}

// release gives back what an engine holds besides memory, a device for instance. A worker does so with its own.
func release(e compute) {
	if c, ok := e.(worker.Closer); ok {
		c.Close()
	}
}

// engine makes the engine of the job, see newEngine. A run without a model has one that computes nothing.
func (j *Job) engine(kind string, threads int) (compute, error) {
	if j.bare() {
		return memory{}, nil
	}
	if j.own.maximises() {
		return objective.New(*j.own.Objective, threads)
	}
	return newEngine(kind, j.Device, j.own, j.Net, j.Samples, threads)
}

// maker is an engine that a run may compute with.
type maker struct {
	name    string // as $BROOD_ENGINE has it
	kernels string // what its bits are called in a log
	device  bool   // it is taken by whoever asks for it, and by nobody else
	// open fails with an uncovered error where the engine has nothing for the model.
	open func(own *Own, net *models.Model, set *data.Set, threads int) (compute, error)
}

// processorKernels are the kernels of a processor by the word that a person adds to it, cpu,bf16: candidates in bfloat16.
var processorKernels = map[string]string{"bf16": arith.BF16, "amx": arith.AMX}

// kernelWord is the word by which kernels of a processor are asked for, "" for those that nobody asks for.
func kernelWord(kernels string) string {
	for word, has := range processorKernels {
		if has == kernels {
			return word
		}
	}
	return ""
}

// requestedKernels are the kernels that a device's text asks a processor for, "" for none.
func requestedKernels(device string) string {
	word, _ := strings.CutPrefix(device, option.CPU+",")
	return processorKernels[word]
}

// engines are all there are, in the order in which they are taken where nobody asks for one.
var engines = []maker{
	{"native", arith.Name, false, onProcessor("native", native.NewEngine)},
	{"gorgonia", (*graph.Engine)(nil).Kernels(), false, func(own *Own, net *models.Model, set *data.Set, threads int) (compute, error) {
		if own != nil {
			return graph.NewOwn(own.Graph, set, threads)
		}
		return graph.New(net, set, threads)
	}},
	{"cuda", arith.Name, true, onDevice("cuda", "")},
	{"opencl", arith.Name, true, onDevice("opencl", "")},
	{"native-bf16", arith.BF16, true, onProcessor("native-bf16", native.NewBF16)},
	{"native-amx", arith.AMX, true, onProcessor("native-amx", native.NewAMX)},
}

// onProcessor opens the native engine, in one of its arithmetics, by its name.
func onProcessor(name string, open func(*models.Model, *data.Set, int, kernel.Variant) (*native.Engine, error)) func(*Own, *models.Model, *data.Set, int) (compute, error) {
	return func(own *Own, net *models.Model, set *data.Set, threads int) (compute, error) {
		if own != nil {
			return nil, &ownError{net.Name, "BROOD_ENGINE=" + name}
		}
		variant, err := kernel.FromEnv()
		if err != nil {
			return nil, err
		}
		return open(net, set, threads, variant)
	}
}

// onDevice opens an engine on the device of a name, for a session of a kind of kernels or for a new one.
func onDevice(name, kind string) func(own *Own, net *models.Model, set *data.Set, threads int) (compute, error) {
	return func(own *Own, net *models.Model, set *data.Set, _ int) (compute, error) {
		d, err := device(name)
		if err != nil {
			return nil, err
		}
		return d.on(kind, own, net, set)
	}
}

// ownError says that an engine, which somebody asked for by what is to be left out, takes lists of layers only.
type ownError struct{ graph, asked string }

func (e *ownError) Error() string {
	return fmt.Sprintf("graph %s: gorgonia computes a graph of one's own: leave %s out", e.graph, e.asked)
}

// otherKernelsError refuses a device for a session of other kernels.
type otherKernelsError struct{ at, has, want string }

func (e *otherKernelsError) Error() string {
	return fmt.Sprintf("device %s computes %s, and the session was computed by kernels %s: the bits may differ, so it is not executed there",
		e.at, e.has, e.want)
}

// uncovered says that another engine may have what this one has not.
func uncovered(err error) bool {
	_, layers := errors.AsType[*native.UncoveredError](err)
	_, own := errors.AsType[*ownError](err)
	return layers || own
}

// newEngine is the engine of a model, or of a graph of one's own. kind names the kernels of a recorded session; the
// empty kind is a person's choice by $BROOD_ENGINE (native, gorgonia, cuda, opencl, native-bf16 or native-amx), and
// without one the first engine that covers the model. Which variant the native engine takes, of those that hold its
// arithmetic, is $BROOD_CPU's choice (amx, avx512, avx2, neon or portable).
//
// at is what a person asked for by --device; "" leaves it to the environment, and no device is taken that nobody asked
// for.
func newEngine(kind, at string, own *Own, net *models.Model, set *data.Set, threads int) (compute, error) {
	if kernels := requestedKernels(at); kernels != "" {
		if _, err := chosen(""); err != nil {
			return nil, err
		}
		if kind != "" && kind != kernels {
			return nil, &otherKernelsError{at, kernels, kind}
		}
		if own != nil {
			return nil, &ownError{net.Name, "--device " + at}
		}
		return engines[slices.IndexFunc(engines, func(m maker) bool { return m.kernels == kernels })].open(own, net, set, threads)
	}
	if !option.Processor(at) {
		e, err := onDevice(at, kind)(own, net, set, threads)
		if err == nil && kind != "" && e.Kernels() != kind {
			release(e)
			return nil, &otherKernelsError{at, e.Kernels(), kind}
		}
		return e, err
	}
	if arithmetic, _, ok := gpu.ParseTensorKind(kind); ok && at == option.CPU {
		return nil, fmt.Errorf("the session was computed by kernels %s, and a processor has no %s: leave --device cpu out, or train anew", kind, arithmetic)
	}
	asked, err := chosen(kind)
	if err != nil {
		return nil, err
	}
	if at == option.CPU && asked != nil && asked.device && (kind == "" || kind == arith.Name) {
		asked = nil
	}
	var why error
	list := engines
	if asked != nil {
		list = []maker{*asked}
	}
	for _, m := range list {
		if asked == nil && m.device {
			continue
		}
		e, err := m.open(own, net, set, threads)
		if err == nil {
			return e, nil
		}
		if why = err; !uncovered(err) {
			break
		}
	}
	return nil, why
}

// chosen is the engine that a recorded kind or the environment asks for; nil where any will do.
func chosen(kind string) (*maker, error) {
	if _, err := kernel.FromEnv(); err != nil {
		return nil, err
	}
	if _, _, ok := gpu.ParseTensorKind(kind); ok {
		return cores(kind)
	}
	name := os.Getenv("BROOD_ENGINE")
	var names []string
	for i, m := range engines {
		if m.name == name && (kind == "" || m.kernels == kind) {
			return &engines[i], nil
		}
		names = append(names, m.name)
	}
	for i, m := range engines { // a person asks for none that has the recorded bits
		if kind != "" && m.kernels == kind {
			return &engines[i], nil
		}
	}
	switch {
	case kind != "":
		return nil, fmt.Errorf("the session was computed by kernels %s and this machine has %s: the bits may differ, so it is not executed here", kind, Kernels())
	case name != "":
		return nil, fmt.Errorf("BROOD_ENGINE = %q is no engine; choose %s", name, strings.Join(names, " or "))
	}
	return nil, nil
}

// cores is the first card whose tensor cores have the bits of a recorded kind.
func cores(kind string) (*maker, error) {
	arithmetic, family, _ := gpu.ParseTensorKind(kind)
	list, _ := Devices()
	for _, d := range list {
		if d.Info.Tensor == family && d.Info.Refuse == "" {
			return &maker{d.Name, kind, true, onDevice(d.Name, kind)}, nil
		}
	}
	return nil, fmt.Errorf("the session was computed by kernels %s, which is %s on tensor cores of compute capability %s, and this machine has no card of these: execute it on one; brood replay shows what it holds",
		kind, arithmetic, strings.TrimPrefix(family, "cuda"))
}

// TensorWorker is what a worker that has not the kind of a run is told where tensor cores or bfloat16 are why, of the
// run or of the kinds that the worker has; "" where they are not.
func TensorWorker(kind string, has []string) string {
	switch {
	case kernelWord(kind) != "":
		return fmt.Sprintf("this run computes with kernels %s, which every processor has and no device: leave --device out, or join with a newer brood", kind)
	case len(has) == 1 && kernelWord(has[0]) != "":
		return fmt.Sprintf("this run computes with kernels %s, and your processor was asked for %s: leave --device out", kind, kernelWord(has[0]))
	}
	arithmetic, family, ok := gpu.ParseTensorKind(kind)
	if !ok {
		for _, other := range has {
			if arithmetic, _, ok = gpu.ParseTensorKind(other); !ok {
				return ""
			}
		}
		if !ok {
			return ""
		}
		return fmt.Sprintf("this run computes with kernels %s, and your device was asked for %s: leave ,%s out of --device", kind, arithmetic, arithmetic)
	}
	return fmt.Sprintf("this run computes with kernels %s, which is %s on tensor cores of compute capability %s: join with --device cuda:0 on a machine that has such a card",
		kind, arithmetic, strings.TrimPrefix(family, "cuda"))
}

// recorded is the kind that computes a session or a file whose kernels were kind, as they are named today. Before f32/1
// each variant had a name: that of avx512 had the same bits, that of avx2 for models without convolutions, and that of
// portable never.
func recorded(kind string, net *models.Model) (string, error) {
	variant, old := strings.CutPrefix(kind, "native/")
	why := "are not known here"
	switch {
	case !old:
		return kind, nil
	case variant == "avx512/amd64" || variant == "avx2/amd64" && !convolves(net):
		return arith.Name, nil
	case variant == "avx2/amd64":
		why = "added up the gradients of convolutions in another order than " + arith.Name + ", the arithmetic of this brood"
	case strings.HasPrefix(variant, "portable/"):
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
	return fmt.Errorf("%w; kernels %s, which computed it, are of before %s: products of low rank (avx2), and the lengths of clipped gradients and of the shifts of hybrid-es (a last bit), were added up in another order, "+
		"which only the brood that recorded it has", err, kind, arith.Name)
}

// Available names what a new run computes with here, for models that the native engine covers; it fails where the
// environment asks for what there is not.
func Available() (string, error) {
	m, err := chosen("")
	if m == nil {
		m = &engines[0]
	}
	return m.kernels, err
}

// Rounded is the device by which this processor evaluates candidates in bfloat16 by instructions that are faster than
// those of float32, "" where it has none.
func Rounded() string {
	variant, err := kernel.FromEnv()
	if err != nil {
		return ""
	}
	k, err := kernel.New(variant)
	if err != nil {
		return ""
	}
	switch order, faster := k.Fast(); {
	case !faster:
		return ""
	case order == kernel.Blocks:
		return option.CPUAMX
	}
	return option.CPUBF16
}

// Kernels is Available, or its error, as text.
func Kernels() string {
	text, err := Available()
	if err != nil {
		return err.Error()
	}
	return text
}
