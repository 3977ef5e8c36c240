package onnx

import (
	"brood/models/data"
)

// Text names the second input of a graph whose samples are a table with categories: [samples, columns of text]. Its
// columns and those of Input are in the order of the table, see the metadata "columns".
const Text = "text"

// columnInputs adds the inputs of a table with categories or missing numbers: numbers, in which NaN is a missing one,
// and texts.
func (g *graph) columnInputs(kind int64) {
	numbers, texts := 0, 0
	for _, c := range g.Form.Columns {
		if c.Categories == nil {
			numbers++
		} else {
			texts++
		}
	}
	if numbers > 0 {
		g.put(graphInput, samples(Input, kind, []int{numbers}))
	}
	if texts > 0 {
		g.put(graphInput, samples(Text, typeString, []int{texts}))
	}
}

// expanded adds the nodes that turn the columns into features, and returns their result: [samples, features].
func (g *graph) expanded(kind int64) string {
	numbers, texts, at := 0, 0, 0
	var parts []string
	for _, c := range g.Form.Columns {
		if c.Categories == nil {
			parts = append(parts, g.number(c, numbers, at, kind)...)
			numbers++
		} else {
			parts = append(parts, g.oneHot(c, texts, kind)...)
			texts++
		}
		at += len(c.Features())
	}
	more := []any{attribute{"axis", 1}}
	for _, part := range parts[1:] {
		more = append(more, part)
	}
	return g.node("Concat", "features", parts[0], more...)
}

// columnOf adds the node for column i of an input.
func (g *graph) columnOf(input string, i int, name string) string {
	return g.node("Slice", name, input, g.ints(name+".begin", i), g.ints(name+".end", i+1), g.ints(name+".axis", 1))
}

// number adds the nodes of a column of numbers, the i-th of them; feature is its index among the features.
func (g *graph) number(c data.Column, i, feature int, kind int64) []string {
	name := "column." + c.Name
	x := g.columnOf(Input, i, name)
	if !c.Fill {
		return []string{x}
	}
	absent := g.node("IsNaN", name+".missing", x)
	out := []string{g.node("Where", name+".filled", absent,
		g.perFeature(name+".mean", []int{1}, g.Form.Mean[feature:feature+1]), x)}
	if c.Flag {
		out = append(out, g.node("Cast", name+".flag", absent, attribute{"to", int(kind)}))
	}
	return out
}

// oneHot adds the nodes of a column of texts, the i-th of them: a feature for each category, and one for other texts.
func (g *graph) oneHot(c data.Column, i int, kind int64) []string {
	name := "column." + c.Name
	x := g.columnOf(Text, i, name)
	hot := g.node("Flatten", name+".known", g.inDomain(domainML, "OneHotEncoder", name+".hot", x,
		attribute{"cats_strings", c.Categories}, attribute{"zeros", 1}), attribute{"axis", 1})
	sum := g.node("ReduceSum", name+".sum", hot, g.ints(name+".sum.axis", 1), attribute{"keepdims", 1})
	one := g.floats(name+".one", []int{1}, []float32{1})
	parts := []string{hot, g.node("Neg", name+".unknown", g.node("Sub", name+".others", sum, one))}
	if kind == typeDouble {
		for k, part := range parts {
			parts[k] = g.node("Cast", part+".wide", part, attribute{"to", typeDouble})
		}
	}
	return parts
}
