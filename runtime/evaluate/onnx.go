package evaluate

import (
	"fmt"
	"io"

	"brood/models/engine"
	"brood/models/format/onnx"
	"brood/runtime/event"
	"brood/runtime/host"
)

// CheckONNX returns the error of [Model.ONNX] for a model of the session in dir, without recomputing its parameters.
// own is as in [Export]. It returns nil for a session that cannot be recomputed.
func CheckONNX(own *host.Own, dir string, at uint64) error {
	p, err := own.Past(dir, at)
	if err != nil {
		return nil // Export reports it, unless it loads a checkpoint
	}
	l := p.Job.Net.Layout
	zeros := func(n int) engine.Host { return engine.NewHost(min(1, n), n, engine.F32) }
	return fromSession(p, event.Checkpoint{Round: at}, zeros(l.Params), zeros(l.Stats)).ONNX(io.Discard)
}

// ONNX writes the model as ONNX, with the same metadata as [Model.Save]. The ONNX graph includes the preprocessing of
// samples; if it is unknown, the graph expects normalised samples. It returns an error for objectives and for graphs of
// Go programs.
func (t *Model) ONNX(w io.Writer) error {
	meta, err := t.meta()
	if err != nil {
		return err
	}
	doc := fmt.Sprintf("%s after round %d of %s", t.Net.Name, t.Round, t.Session)
	if f := t.Read.Form; f != nil && f.Resize.Side > 0 {
		doc += fmt.Sprintf("; the input is pictures as %v bytes, %s", f.Shape, f.Resize.Doc())
	}
	if t.own.Maximises() {
		return fmt.Errorf("%s holds the parameters of an objective, which ONNX cannot represent: export it as safetensors",
			t.Net.Name)
	}
	if t.own != nil {
		return fmt.Errorf("%s is a graph that a Go program defines, which ONNX cannot represent: export it as safetensors",
			t.Net.Name)
	}
	return onnx.Write(w, onnx.Model{Net: t.Net, Params: t.Params, Stats: t.Stats, Form: t.Read.Form, Meta: meta, Doc: doc})
}
