package optim

import (
	"context"

	"brood/optim/collective"

	"brood/models/engine"
)

// KnobWire chooses the code of an algorithm's all-reduce of parameters or gradients.
var KnobWire = Knob{Name: "wire", Title: "wire format", Doc: "how the values of an all-reduce are written: exact, or rounded to 16 or 8 bits; what int8 loses is added to the next message (error feedback)",
	Choices: []string{"float32", "bf16", "int8"}, Max: 2}

// residual is what each member's messages have lost so far: the error feedback of Int8.
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

// mean writes the mean over all members of the rows of src (one for each hosted here, of Params columns), through the
// wire's code.
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
