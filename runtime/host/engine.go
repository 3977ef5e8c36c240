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
	"brood/runtime/option"
	"brood/runtime/worker"
)

// Engine computes a model, a program or an objective.
type Engine interface {
	engine.Engine
	// Kernels names what determines the bits of its results: an arithmetic, or engine/library/architecture.
	Kernels() string
	// EstimateMemory returns the bytes of memory that the engine has allocated after the given work.
	EstimateMemory(engine.Work) int64
}

// Release closes an engine that holds more than memory, such as a device. A worker closes its own engine.
func Release(e Engine) {
	if c, ok := e.(worker.Closer); ok {
		c.Close()
	}
}

// engine returns a new engine for the job, see [NewEngine]. The engine of a run without a model computes nothing.
func (j *Job) engine(kind string, threads int) (Engine, error) {
	if j.Modelless() {
		return memory{}, nil
	}
	if j.own.trains() {
		return j.own.Program.Engine(threads)
	}
	if j.own.Maximises() {
		e, err := objective.New(*j.own.Objective, threads)
		switch {
		case j.own.simulates():
			return simulator{builtIn{e}, j.own.player}, err
		case j.own.builtIn != "":
			return builtIn{e}, err
		}
		return e, err
	}
	return NewEngine(kind, j.Device, j.own, j.Net, j.Samples, threads)
}

// engineSpec is one of the engines that a run can use.
type engineSpec struct {
	name    string // value of $BROOD_ENGINE
	kernels string // name of its kernels in a log
	device  bool   // used only on explicit request, never by default
	// open returns an uncovered error if the engine does not support the model.
	open func(own *Own, net *models.Model, set *data.Set, threads int) (Engine, error)
}

// processorKernels maps the word after "cpu," in --device to kernels: cpu,bf16 evaluates candidates in bfloat16.
var processorKernels = map[string]string{"bf16": arith.BF16, "amx": arith.AMX}

// kernelWord returns the word that selects kernels of a processor, "" for kernels without such a word.
func kernelWord(kernels string) string {
	for word, has := range processorKernels {
		if has == kernels {
			return word
		}
	}
	return ""
}

// requestedKernels returns the kernels that a --device text selects on the processor, "" for none.
func requestedKernels(device string) string {
	word, _ := strings.CutPrefix(device, option.CPU+",")
	return processorKernels[word]
}

// engines lists all engines in order of preference.
var engines = []engineSpec{
	{"native", arith.Name, false, onProcessor("native", native.NewEngine)},
	{"gorgonia", (*graph.Engine)(nil).Kernels(), false, openGraph},
	{"cuda", arith.Name, true, onDevice("cuda", "")},
	{"opencl", arith.Name, true, onDevice("opencl", "")},
	{"native-bf16", arith.BF16, true, onProcessor("native-bf16", native.NewBF16)},
	{"native-amx", arith.AMX, true, onProcessor("native-amx", native.NewAMX)},
}

// openGraph is the engineSpec.open of gorgonia. It trains the graph of a Go program if there is one.
func openGraph(own *Own, net *models.Model, set *data.Set, threads int) (Engine, error) {
	if own != nil {
		return graph.NewOwn(own.Graph, set, threads)
	}
	return graph.New(net, set, threads)
}

// onProcessor returns an engineSpec.open for the native engine in one of its arithmetics. name is its $BROOD_ENGINE
// value.
func onProcessor(
	name string, open func(*models.Model, *data.Set, int, kernel.Variant) (*native.Engine, error),
) func(*Own, *models.Model, *data.Set, int) (Engine, error) {
	return func(own *Own, net *models.Model, set *data.Set, threads int) (Engine, error) {
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

// onDevice returns an engineSpec.open for the named device. kind names the kernels of a recorded session, "" for a new
// one.
func onDevice(
	name, kind string,
) func(own *Own, net *models.Model, set *data.Set, threads int) (Engine, error) {
	return func(own *Own, net *models.Model, set *data.Set, _ int) (Engine, error) {
		d, err := device(name)
		if err != nil {
			return nil, err
		}
		return d.on(kind, own, net, set)
	}
}

// ownError rejects an engine that supports only lists of layers, for the graph of a Go program. asked is the setting
// that requested the engine.
type ownError struct{ graph, asked string }

func (e *ownError) Error() string {
	return fmt.Sprintf("graph %s: only gorgonia computes the graph of a Go program: omit %s", e.graph, e.asked)
}

// otherKernelsError rejects a device whose kernels differ from those of the session.
type otherKernelsError struct{ at, has, want string }

func (e *otherKernelsError) Error() string {
	return fmt.Sprintf("device %s computes %s, and the session was computed by kernels %s: the bits may differ, "+
		"so it is not executed there", e.at, e.has, e.want)
}

// uncovered reports whether an engine does not support the model, so that another engine may.
func uncovered(err error) bool {
	_, layers := errors.AsType[*native.UncoveredError](err)
	_, own := errors.AsType[*ownError](err)
	return layers || own
}

// NewEngine returns an engine for a model, or for the graph of a Go program own (nil: there is none), which computes on
// the samples of set with the given number of threads. The caller releases it, see [Release]. kind names the kernels of
// a recorded session. If kind is empty, $BROOD_ENGINE selects the engine (native, gorgonia, cuda, opencl, native-bf16
// or native-amx), and if that is empty too, the first engine that supports the model. $BROOD_CPU selects the kernel
// variant of the native engine (amx, avx512, avx2, neon or portable); all variants of an arithmetic compute the same
// bits.
//
// at is the value of --device; "" leaves the choice to the environment. A device is never used without a request.
func NewEngine(kind, at string, own *Own, net *models.Model, set *data.Set, threads int) (Engine, error) {
	if kernels := requestedKernels(at); kernels != "" {
		if _, err := selectedEngine(""); err != nil {
			return nil, err
		}
		if kind != "" && kind != kernels {
			return nil, &otherKernelsError{at, kernels, kind}
		}
		if own != nil {
			return nil, &ownError{net.Name, "--device " + at}
		}
		at := slices.IndexFunc(engines, func(m engineSpec) bool { return m.kernels == kernels })
		return engines[at].open(own, net, set, threads)
	}
	if !option.IsCPU(at) {
		e, err := onDevice(at, kind)(own, net, set, threads)
		if err == nil && kind != "" && e.Kernels() != kind {
			Release(e)
			return nil, &otherKernelsError{at, e.Kernels(), kind}
		}
		return e, err
	}
	if arithmetic, _, ok := gpu.ParseTensorKind(kind); ok && at == option.CPU {
		return nil, fmt.Errorf("the session was computed by kernels %s, and a processor has no %s: omit --device cpu, "+
			"or start a new run", kind, arithmetic)
	}
	asked, err := selectedEngine(kind)
	if err != nil {
		return nil, err
	}
	if at == option.CPU && asked != nil && asked.device && (kind == "" || kind == arith.Name) {
		asked = nil
	}
	var why error
	list := engines
	if asked != nil {
		list = []engineSpec{*asked}
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

// selectedEngine returns the engine that a recorded kind or the environment selects; nil if neither selects one.
func selectedEngine(kind string) (*engineSpec, error) {
	if _, err := kernel.FromEnv(); err != nil {
		return nil, err
	}
	if _, _, ok := gpu.ParseTensorKind(kind); ok {
		return tensorCoreEngine(kind)
	}
	name := os.Getenv("BROOD_ENGINE")
	var names []string
	for i, m := range engines {
		if m.name == name && (kind == "" || m.kernels == kind) {
			return &engines[i], nil
		}
		names = append(names, m.name)
	}
	for i, m := range engines { // the environment selects no engine with the recorded kernels
		if kind != "" && m.kernels == kind {
			return &engines[i], nil
		}
	}
	switch {
	case kind != "":
		return nil, fmt.Errorf("the session was computed by kernels %s and this machine has %s: the bits may differ, "+
			"so it is not executed here", kind, Kernels())
	case name != "":
		return nil, fmt.Errorf("BROOD_ENGINE = %q is not an engine: choose %s", name, strings.Join(names, " or "))
	}
	return nil, nil
}

// tensorCoreEngine returns the engine of the first card whose tensor cores compute the bits of a recorded kind.
func tensorCoreEngine(kind string) (*engineSpec, error) {
	arithmetic, family, _ := gpu.ParseTensorKind(kind)
	list, _ := Devices()
	for _, d := range list {
		if d.Info.Tensor == family && d.Info.Refuse == "" {
			return &engineSpec{d.Name, kind, true, onDevice(d.Name, kind)}, nil
		}
	}
	return nil, fmt.Errorf("the session was computed by kernels %s, which is %s on tensor cores of compute capability "+
		"%s, and this machine has no such card: execute it on a machine with one; brood replay shows its contents",
		kind, arithmetic, strings.TrimPrefix(family, "cuda"))
}

// TensorMismatch returns why a worker cannot join a run of kernels kind, if tensor cores or bfloat16 of the run or of
// the worker are the cause; otherwise "". has lists the kernels of the worker.
func TensorMismatch(kind string, has []string) string {
	switch {
	case kernelWord(kind) != "":
		return fmt.Sprintf("this run computes with kernels %s, which every processor has and no device: omit --device, "+
			"or join with a newer brood", kind)
	case len(has) == 1 && kernelWord(has[0]) != "":
		return fmt.Sprintf("this run computes with kernels %s, and your worker requests %s: omit --device",
			kind, kernelWord(has[0]))
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
		return fmt.Sprintf("this run computes with kernels %s, and your worker requests %s: remove ,%s from --device",
			kind, arithmetic, arithmetic)
	}
	return fmt.Sprintf("this run computes with kernels %s, which is %s on tensor cores of compute capability %s: join "+
		"with --device cuda:0 on a machine that has such a card",
		kind, arithmetic, strings.TrimPrefix(family, "cuda"))
}

// MixedKernels returns a warning, without a subject, if a model was trained with other kernels than those that
// evaluated it: the arithmetic of tensor cores changes predictions, any other one their last digits. It returns "" if
// both are equal or trained is "", unknown.
func MixedKernels(trained, evaluated string) string {
	if trained == "" || trained == evaluated {
		return ""
	}
	what := "the last digits may differ"
	if _, _, ok := gpu.ParseTensorKind(trained); ok {
		what = "predictions may differ"
	}
	return fmt.Sprintf("trained with kernels %s and evaluated with %s: %s", trained, evaluated, what)
}

// Available returns the kernels of a new run on this machine, for models that the native engine supports. It returns an
// error if the environment selects an unknown engine or kernel variant.
func Available() (string, error) {
	m, err := selectedEngine("")
	if m == nil {
		m = &engines[0]
	}
	return m.kernels, err
}

// BF16Device returns the --device value with which this processor evaluates candidates in bfloat16 faster than in
// float32, and "" if it has no such instructions.
func BF16Device() string {
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

// Kernels returns the result of [Available], or its error, as text.
func Kernels() string {
	text, err := Available()
	if err != nil {
		return err.Error()
	}
	return text
}
