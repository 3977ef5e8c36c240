package data

import (
	"fmt"
	"slices"
)

// narrow converts doubles to float32 values if all of them are exactly representable.
func (p *part) narrow() {
	if p.Doubles == nil || slices.ContainsFunc(p.Doubles,
		func(v float64) bool { return float64(float32(v)) != v && v == v }) {
		return
	}
	p.round()
}

// round converts doubles to float32 values.
func (p *part) round() {
	if p.Doubles == nil {
		return
	}
	p.Values, p.Doubles = converted[float32](p.Doubles), nil
}

// widen converts float32 values to doubles.
func (p *part) widen() {
	if p.Values == nil {
		return
	}
	p.Doubles, p.Values = converted[float64](p.Values), nil
}

// converted returns the numbers of x in another type.
func converted[To, From byte | float32 | float64](x []From) []To {
	out := make([]To, len(x))
	for i, v := range x {
		out[i] = To(v)
	}
	return out
}

// unifyType converts the samples of all parts to one type. Numbers of a table become bytes if the user requests it or
// the model was trained on bytes. It fails if some parts are bytes and others numbers, or if a number to convert is not
// a byte.
func (r Reading) unifyType(parts []*part) error {
	train, wide := parts[0], false
	for _, p := range parts {
		if (train.Pixels == nil) != (p.Pixels == nil) {
			return fmt.Errorf("%s: its samples are of another type than the training samples; "+
				"save all as bytes or all as numbers", p.path)
		}
		wide = wide || p.Doubles != nil
	}
	for _, p := range parts {
		if wide {
			p.widen()
		}
	}
	switch {
	case r.Form != nil && !r.Form.Bytes && train.Pixels != nil:
		return fmt.Errorf("%s: %w", train.path, typeError(false))
	case r.Form != nil && !r.Form.Bytes, r.Form == nil && !r.Table.Bytes:
		return nil
	}
	for _, p := range parts {
		if p.Pixels != nil {
			continue
		}
		odd, value := p.firstNonByte()
		switch {
		case r.Form != nil && !p.fromText:
			return fmt.Errorf("%s: %w", p.path, typeError(true))
		case r.Form != nil && odd >= 0:
			return fmt.Errorf("%s: the value %g is no byte, and the model was trained on bytes; save whole numbers, 0 to 255",
				p.sampleName(odd/size(p.shape)), value)
		case odd >= 0:
			return fmt.Errorf("%s: the value %g is no byte; leave out --table bytes, or save whole numbers, 0 to 255",
				p.sampleName(odd/size(p.shape)), value)
		}
	}
	for _, p := range parts {
		if p.Pixels != nil {
			continue
		}
		p.Pixels, p.Values = converted[byte](p.Values), nil
	}
	return nil
}

// firstNonByte returns the index and value of the first number that is not a whole number from 0 to 255; -1 if all are.
func (p *part) firstNonByte() (at int, value float64) {
	is := func(v float64) bool { return v == float64(uint8(min(max(v, 0), 255))) }
	for i, v := range p.Doubles {
		if !is(v) {
			return i, v
		}
	}
	for i, v := range p.Values {
		if !is(float64(v)) {
			return i, float64(v)
		}
	}
	return -1, 0
}
