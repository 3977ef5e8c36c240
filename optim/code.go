package optim

import (
	"context"

	"brood/models/engine"
	"brood/optim/collective"
)

// KnobWire selects the encoding of values in an all-reduce of parameters or gradients.
var KnobWire = Knob{
	Group: GroupRound,
	Name:  "wire",
	Title: "wire format",
	Doc: "how the values of an all-reduce are written: exact, or rounded to 16 or 8 bits; what int8 loses is added " +
		"to the next message (error feedback)",
	Choices: []string{"float32", "bf16", "int8"},
}

// Residual declares the block of rounding errors of each member's messages, for the error feedback of int8; it does not
// exist for other encodings.
func Residual(k Values, l engine.Layout) Block {
	b := Params(BlockResidual, false, EnterZero, l)
	if wire(k) != engine.Int8 {
		b.Cols = 0
	}
	return b
}

func wire(k Values) engine.Code {
	switch k.Choice("wire") {
	case "bf16":
		return engine.BF16
	case "int8":
		return engine.Int8
	}
	return engine.Float32
}

// AllReduceMean writes the mean over all members of the rows of src (one per member hosted here, Params columns) to dst
// (1 row), in the encoding of KnobWire.
func (e *Env) AllReduceMean(ctx context.Context, k Values, op collective.Op, src, dst engine.Mat) error {
	code := wire(k)
	if lost := e.Block(BlockResidual); lost.Rows > 0 && code == engine.Int8 {
		sent := e.Scratch(src.Rows, src.Cols)
		if err := e.Engine.Do(ctx, engine.Feedback{Dst: sent, Src: src, Lost: lost, Code: code}); err != nil {
			return err
		}
		src = sent
	}
	return e.Comm.Reduce(ctx, op, e.Roster, src, dst, true, code)
}
