package onnx

import (
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Fields and values of the messages of onnx.proto used here (https://onnx.ai/onnx/api/classes.html).
const (
	modelIR, modelProducer, modelVersion, modelDoc, modelGraph, modelOpset, modelMeta = 1, 2, 3, 6, 7, 8, 14
	opsetDomain, opsetVersion                                                         = 1, 2
	metaKey, metaValue                                                                = 1, 2
	graphNode, graphName, graphInitializer, graphInput, graphOutput                   = 1, 2, 5, 11, 12
	nodeInput, nodeOutput, nodeName, nodeOp, nodeAttribute, nodeDomain                = 1, 2, 3, 4, 5, 7
	attributeName, attributeFloat, attributeInt, attributeInts, attributeType         = 1, 2, 3, 8, 20
	attributeIsFloat, attributeIsInt, attributeIsInts                                 = 1, 2, 7
	attributeStrings, attributeIsStrings                                              = 9, 8
	tensorDims, tensorType, tensorName, tensorRaw                                     = 1, 2, 8, 9
	valueName, valueType, typeTensor, tensorElement, tensorShape                      = 1, 2, 1, 1, 2
	shapeDim, dimValue, dimName                                                       = 1, 1, 2

	typeFloat, typeByte, typeInt, typeString, typeDouble = 1, 2, 7, 8, 11
)

// domainML is the domain of the operators for categories, and versionML the version of its operator set.
const (
	domainML  = "ai.onnx.ml"
	versionML = 1
)

// message is the encoding of a protobuf message, appended to by its methods.
type message []byte

func (m *message) text(field protowire.Number, s string) {
	*m = protowire.AppendString(protowire.AppendTag(*m, field, protowire.BytesType), s)
}

func (m *message) whole(field protowire.Number, x int64) {
	*m = protowire.AppendVarint(protowire.AppendTag(*m, field, protowire.VarintType), uint64(x))
}

func (m *message) real(field protowire.Number, x float32) {
	*m = protowire.AppendFixed32(protowire.AppendTag(*m, field, protowire.Fixed32Type), math.Float32bits(x))
}

func (m *message) put(field protowire.Number, inner message) {
	*m = protowire.AppendBytes(protowire.AppendTag(*m, field, protowire.BytesType), inner)
}

// attribute is an attribute of a node: an int, a float32, ints, or texts.
type attribute struct {
	name  string
	value any
}

func (a attribute) message() (m message) {
	m.text(attributeName, a.name)
	switch v := a.value.(type) {
	case int:
		m.whole(attributeInt, int64(v))
		m.whole(attributeType, attributeIsInt)
	case float32:
		m.real(attributeFloat, v)
		m.whole(attributeType, attributeIsFloat)
	case []int:
		for _, x := range v {
			m.whole(attributeInts, int64(x))
		}
		m.whole(attributeType, attributeIsInts)
	case []string:
		for _, x := range v {
			m.text(attributeStrings, x)
		}
		m.whole(attributeType, attributeIsStrings)
	}
	return m
}

// node returns a node that applies an operator to results and constants ("" for an omitted input) and names its result.
func node(op, result string, inputs []string, attributes ...attribute) (m message) {
	for _, x := range inputs {
		m.text(nodeInput, x)
	}
	m.text(nodeOutput, result)
	m.text(nodeName, result)
	m.text(nodeOp, op)
	for _, a := range attributes {
		m.put(nodeAttribute, a.message())
	}
	return m
}

// floats returns a constant tensor.
func floats(name string, shape []int, x []float32) message {
	raw := make([]byte, 0, 4*len(x))
	for _, v := range x {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	return constant(name, typeFloat, shape, raw)
}

// doubles returns a constant of float64.
func doubles(name string, shape []int, x []float64) message {
	raw := make([]byte, 0, 8*len(x))
	for _, v := range x {
		raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(v))
	}
	return constant(name, typeDouble, shape, raw)
}

// ints returns a constant list.
func ints(name string, x []int) message {
	var raw []byte
	for _, v := range x {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(v))
	}
	return constant(name, typeInt, []int{len(x)}, raw)
}

func constant(name string, kind int64, shape []int, raw []byte) (m message) {
	for _, d := range shape {
		m.whole(tensorDims, int64(d))
	}
	m.whole(tensorType, kind)
	m.text(tensorName, name)
	m.put(tensorRaw, raw)
	return m
}

// samples describes an input or output: any number of samples of a shape.
func samples(name string, kind int64, shape []int) (m message) {
	var dims, tensor, of message
	var any message
	any.text(dimName, "samples")
	dims.put(shapeDim, any)
	for _, d := range shape {
		var dim message
		dim.whole(dimValue, int64(d))
		dims.put(shapeDim, dim)
	}
	tensor.whole(tensorElement, kind)
	tensor.put(tensorShape, dims)
	of.put(typeTensor, tensor)
	m.text(valueName, name)
	m.put(valueType, of)
	return m
}
