package data

import (
	"fmt"
	"slices"
)

// narrow stores doubles as values where float32 holds each of them.
func (p *part) narrow() {
	if p.Doubles == nil || slices.ContainsFunc(p.Doubles, func(v float64) bool { return float64(float32(v)) != v }) {
		return
	}
	p.round()
}

// round stores doubles as values.
func (p *part) round() {
	if p.Doubles == nil {
		return
	}
	p.Values = make([]float32, len(p.Doubles))
	for i, v := range p.Doubles {
		p.Values[i] = float32(v)
	}
	p.Doubles = nil
}

// widen stores values as doubles.
func (p *part) widen() {
	if p.Values == nil {
		return
	}
	p.Doubles = make([]float64, len(p.Values))
	for i, v := range p.Values {
		p.Doubles[i] = float64(v)
	}
	p.Values = nil
}

// settleType gives all parts one type of samples. Numbers of a table become bytes where the user says so, or where the
// model was trained on bytes.
func (r Reading) settleType(parts []*part) error {
	train, wide := parts[0], false
	for _, p := range parts {
		if (train.Pixels == nil) != (p.Pixels == nil) {
			return fmt.Errorf("%s: its samples are of another type than the training samples; save all as bytes or all as numbers", p.from)
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
		return fmt.Errorf("%s: %w", train.from, typeError(false))
	case r.Form != nil && !r.Form.Bytes, r.Form == nil && !r.Table.Bytes:
		return nil
	}
	for _, p := range parts {
		if p.Pixels != nil {
			continue
		}
		odd, value := p.noByte()
		switch {
		case r.Form != nil && !p.text:
			return fmt.Errorf("%s: %w", p.from, typeError(true))
		case r.Form != nil && odd >= 0:
			return fmt.Errorf("%s: the value %g is no byte, and the model was trained on bytes; save whole numbers, 0 to 255", p.place(odd/size(p.shape)), value)
		case odd >= 0:
			return fmt.Errorf("%s: the value %g is no byte; leave out --table bytes, or save whole numbers, 0 to 255", p.place(odd/size(p.shape)), value)
		}
	}
	for _, p := range parts {
		if p.Pixels != nil {
			continue
		}
		p.Pixels = make([]byte, len(p.Values))
		for i, v := range p.Values {
			p.Pixels[i] = byte(v)
		}
		p.Values = nil
	}
	return nil
}

// noByte returns the place of the first number that is no byte, and the number; -1 where all are bytes.
func (p *part) noByte() (at int, value float64) {
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
