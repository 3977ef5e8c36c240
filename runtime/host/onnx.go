package host

import (
	"fmt"
	"io"

	"brood/models/format/onnx"
)

// ONNX writes the model as package onnx does, with the same metadata as [Trained.Save]. Where the form of its data is
// not known it takes samples that are normalised already.
func (t *Trained) ONNX(w io.Writer) error {
	meta, err := t.meta()
	if err != nil {
		return err
	}
	doc := fmt.Sprintf("%s after round %d of %s", t.Net.Name, t.Round, t.Session)
	if t.own.maximises() {
		return fmt.Errorf("%s is parameters of an objective and no model of layers, so that it has no form in ONNX: export it as safetensors", t.Net.Name)
	}
	if t.own != nil {
		return fmt.Errorf("%s is a graph of a Go program's own, which has no form in ONNX: export it as safetensors", t.Net.Name)
	}
	return onnx.Write(w, onnx.Model{Net: t.Net, Params: t.Params, Stats: t.Stats, Form: t.Read.Form, Meta: meta, Doc: doc})
}
