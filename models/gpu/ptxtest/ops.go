package ptxtest

import (
	"math"
	"math/bits"
	"strings"
)

// operation returns the effect on registers of an instruction without memory access. Registers hold the bits of their
// value; 32-bit values are zero-extended; predicates are 0 or 1.
func operation(op string) (func(t *thread, i *inst), bool) {
	switch {
	case op == "ret":
		return func(t *thread, _ *inst) { t.state = done }, true
	case op == "shf.l.wrap.b32":
		return funnel, true
	case op == "cvt.rna.tf32.f32":
		return func(t *thread, i *inst) { t.r[i.d] = toTF32(t.r[i.a]) }, true
	case op == "cvt.rn.bf16x2.f32":
		return func(t *thread, i *inst) { t.r[i.d] = toBF16(t.r[i.a])<<16 | toBF16(t.r[i.b]) }, true
	case op == "bar.sync":
		return func(t *thread, _ *inst) { t.state = waiting }, true
	case strings.HasPrefix(op, "cvta."), strings.HasPrefix(op, "mov."):
		wide := strings.HasSuffix(op, "64")
		return func(t *thread, i *inst) { t.r[i.d] = narrow(t.r[i.a], wide) }, true
	case strings.HasPrefix(op, "setp."):
		return setp(op[5:])
	case strings.HasPrefix(op, "selp."):
		return func(t *thread, i *inst) {
			from := i.b
			if t.r[i.c] != 0 {
				from = i.a
			}
			t.r[i.d] = t.r[from]
		}, true
	case strings.HasPrefix(op, "cvt."):
		return convert(op[4:])
	}
	if f, ok := integers[op]; ok {
		wide := strings.HasSuffix(op, "64") || strings.HasPrefix(op, "mul.wide")
		return func(t *thread, i *inst) { t.r[i.d] = narrow(f(t.r[i.a], t.r[i.b], t.r[i.c]), wide) }, true
	}
	if f, ok := singles[op]; ok {
		return func(t *thread, i *inst) {
			t.r[i.d] = fromSingle(f(single(t.r[i.a]), single(t.r[i.b]), single(t.r[i.c])))
		}, true
	}
	if f, ok := doubles[op]; ok {
		return func(t *thread, i *inst) {
			t.r[i.d] = fromDouble(f(double(t.r[i.a]), double(t.r[i.b]), double(t.r[i.c])))
		}, true
	}
	return nil, false
}

func narrow(x uint64, wide bool) uint64 {
	if wide {
		return x
	}
	return uint64(uint32(x))
}

// integers are the integer instructions; results of those whose names end in 32 are truncated to 32 bits.
var integers = map[string]func(a, b, c uint64) uint64{
	"add.s32": func(a, b, _ uint64) uint64 { return a + b }, "add.s64": func(a, b, _ uint64) uint64 { return a + b },
	"add.u64": func(a, b, _ uint64) uint64 { return a + b },
	"sub.s32": func(a, b, _ uint64) uint64 { return a - b }, "sub.s64": func(a, b, _ uint64) uint64 { return a - b },
	"mul.lo.s32": func(a, b, _ uint64) uint64 { return a * b }, "mul.lo.s64": func(a, b, _ uint64) uint64 { return a * b },
	"mad.lo.s32": func(a, b, c uint64) uint64 { return a*b + c }, "mad.lo.s64": func(a, b,
		c uint64) uint64 {
		return a*b + c
	},
	"mul.wide.u32": func(a, b, _ uint64) uint64 { return uint64(uint32(a)) * uint64(uint32(b)) },
	"mul.wide.s32": func(a, b, _ uint64) uint64 { return uint64(int64(int32(a)) * int64(int32(b))) },
	"mul.hi.u32":   func(a, b, _ uint64) uint64 { return uint64(uint32(a)) * uint64(uint32(b)) >> 32 },
	"mul.hi.s32":   func(a, b, _ uint64) uint64 { return uint64(int64(int32(a)) * int64(int32(b)) >> 32) },
	"mul.hi.u64":   func(a, b, _ uint64) uint64 { h, _ := bits.Mul64(a, b); return h },
	"div.u32":      func(a, b, _ uint64) uint64 { return uint64(uint32(a) / divisor(uint32(b))) },
	"div.s32":      func(a, b, _ uint64) uint64 { return uint64(int32(a) / int32(divisor(uint32(b)))) },
	"div.u64":      func(a, b, _ uint64) uint64 { return a / divisor(b) },
	"rem.u32":      func(a, b, _ uint64) uint64 { return uint64(uint32(a) % divisor(uint32(b))) },
	"rem.s32":      func(a, b, _ uint64) uint64 { return uint64(int32(a) % int32(divisor(uint32(b)))) },
	"rem.u64":      func(a, b, _ uint64) uint64 { return a % divisor(b) },
	"min.u32":      func(a, b, _ uint64) uint64 { return uint64(min(uint32(a), uint32(b))) },
	"max.u32":      func(a, b, _ uint64) uint64 { return uint64(max(uint32(a), uint32(b))) },
	"min.s32":      func(a, b, _ uint64) uint64 { return uint64(min(int32(a), int32(b))) },
	"max.s32":      func(a, b, _ uint64) uint64 { return uint64(max(int32(a), int32(b))) },
	"min.u64":      func(a, b, _ uint64) uint64 { return min(a, b) }, "max.u64": func(a, b,
		_ uint64) uint64 {
		return max(a, b)
	},
	"min.s64":  func(a, b, _ uint64) uint64 { return uint64(min(int64(a), int64(b))) },
	"max.s64":  func(a, b, _ uint64) uint64 { return uint64(max(int64(a), int64(b))) },
	"and.b32":  func(a, b, _ uint64) uint64 { return a & b },
	"and.b64":  func(a, b, _ uint64) uint64 { return a & b },
	"and.pred": func(a, b, _ uint64) uint64 { return a & b },
	"or.b32":   func(a, b, _ uint64) uint64 { return a | b },
	"or.b64":   func(a, b, _ uint64) uint64 { return a | b },
	"or.pred":  func(a, b, _ uint64) uint64 { return a | b },
	"xor.b32":  func(a, b, _ uint64) uint64 { return a ^ b },
	"xor.b64":  func(a, b, _ uint64) uint64 { return a ^ b },
	"xor.pred": func(a, b, _ uint64) uint64 { return a ^ b },
	"not.b32":  func(a, _, _ uint64) uint64 { return ^a },
	"not.b64":  func(a, _, _ uint64) uint64 { return ^a },
	"not.pred": func(a, _, _ uint64) uint64 { return a ^ 1 },
	"neg.s32":  func(a, _, _ uint64) uint64 { return -a }, "neg.s64": func(a, _, _ uint64) uint64 { return -a },
	"add.s16":    func(a, b, _ uint64) uint64 { return uint64(uint16(a + b)) },
	"sub.s16":    func(a, b, _ uint64) uint64 { return uint64(uint16(a - b)) },
	"mul.lo.s16": func(a, b, _ uint64) uint64 { return uint64(uint16(a * b)) },
	"div.u16":    func(a, b, _ uint64) uint64 { return uint64(uint16(a) / uint16(divisor(uint32(uint16(b))))) },
	"rem.u16":    func(a, b, _ uint64) uint64 { return uint64(uint16(a) % uint16(divisor(uint32(uint16(b))))) },
	"shl.b16":    func(a, b, _ uint64) uint64 { return uint64(uint16(a) << uint32(b)) },
	"shl.b32":    func(a, b, _ uint64) uint64 { return uint64(uint32(a) << uint32(b)) },
	"shl.b64":    func(a, b, _ uint64) uint64 { return a << uint32(b) },
	"shr.u32":    func(a, b, _ uint64) uint64 { return uint64(uint32(a) >> uint32(b)) },
	"shr.s32":    func(a, b, _ uint64) uint64 { return uint64(int32(a) >> uint32(b)) },
	"shr.u64":    func(a, b, _ uint64) uint64 { return a >> uint32(b) },
	"shr.s64":    func(a, b, _ uint64) uint64 { return uint64(int64(a) >> uint32(b)) },
	"bfe.u32":    func(a, b, c uint64) uint64 { return uint64(uint32(a) >> uint32(b) & (1<<uint32(c) - 1)) },
	"bfe.s32": func(a, b, c uint64) uint64 {
		return uint64(int32(uint32(a)<<(32-uint32(b)-uint32(c))) >> (32 - uint32(c)))
	},
}

// divisor returns x; 0 is a fault.
func divisor[T uint32 | uint64](x T) T {
	if x == 0 {
		panic(fault("a division by 0"))
	}
	return x
}

// singles round each result to float32 once.
var singles = map[string]func(a, b, c float32) float32{
	"add.rn.f32":  func(a, b, _ float32) float32 { return a + b },
	"sub.rn.f32":  func(a, b, _ float32) float32 { return a - b },
	"mul.rn.f32":  func(a, b, _ float32) float32 { return a * b },
	"div.rn.f32":  func(a, b, _ float32) float32 { return a / b },
	"rcp.rn.f32":  func(a, _, _ float32) float32 { return 1 / a },
	"fma.rn.f32":  fused,
	"sqrt.rn.f32": func(a, _, _ float32) float32 { return float32(math.Sqrt(float64(a))) },
	"abs.f32":     func(a, _, _ float32) float32 { return math.Float32frombits(math.Float32bits(a) &^ (1 << 31)) },
	"max.f32":     greater,
	"neg.f32":     func(a, _, _ float32) float32 { return math.Float32frombits(math.Float32bits(a) ^ 1<<31) },
}

var doubles = map[string]func(a, b, c float64) float64{
	"add.rn.f64":  func(a, b, _ float64) float64 { return a + b },
	"sub.rn.f64":  func(a, b, _ float64) float64 { return a - b },
	"mul.rn.f64":  func(a, b, _ float64) float64 { return a * b },
	"div.rn.f64":  func(a, b, _ float64) float64 { return a / b },
	"rcp.rn.f64":  func(a, _, _ float64) float64 { return 1 / a },
	"fma.rn.f64":  math.FMA,
	"sqrt.rn.f64": func(a, _, _ float64) float64 { return math.Sqrt(a) },
	"abs.f64":     func(a, _, _ float64) float64 { return math.Abs(a) },
	"neg.f64":     func(a, _, _ float64) float64 { return -a },
}

// greater is max.f32: of a number and NaN it returns the number, of two zeros the positive one.
func greater(a, b, _ float32) float32 {
	switch {
	case a != a:
		return b
	case b != b || a > b || a == b && !math.Signbit(float64(a)):
		return a
	}
	return b
}

// fused returns a*b+c rounded once: the product is exact in float64, and the sum is rounded to odd there (Boldo &
// Melquiond 2008).
func fused(a, b, c float32) float32 {
	p := float64(a) * float64(b)
	s := p + float64(c)
	if math.IsInf(s, 0) || math.IsNaN(s) {
		return float32(s)
	}
	back := s - p
	lost := (p - (s - back)) + (float64(c) - back)
	if x := math.Float64bits(s); lost != 0 && x&1 == 0 {
		if (lost > 0) == (s > 0) {
			s = math.Float64frombits(x + 1)
		} else {
			s = math.Float64frombits(x - 1)
		}
	}
	return float32(s)
}

// setp compares two operands of a type with eq, ne, lt and so on; with a u suffix it is also true for unordered
// operands.
func setp(op string) (func(t *thread, i *inst), bool) {
	how, of, ok := strings.Cut(op, ".")
	if !ok {
		return nil, false
	}
	order := func(t *thread, i *inst) (sign int, known bool) {
		a, b := t.r[i.a], t.r[i.b]
		switch of {
		case "s32":
			return compare(int32(a), int32(b)), true
		case "u32", "b32":
			return compare(uint32(a), uint32(b)), true
		case "s64":
			return compare(int64(a), int64(b)), true
		case "u64", "b64":
			return compare(a, b), true
		case "f32":
			x, y := single(a), single(b)
			return compare(x, y), x == x && y == y
		}
		x, y := double(a), double(b)
		return compare(x, y), x == x && y == y
	}
	if !strings.Contains(" s32 u32 b32 s64 u64 b64 f32 f64 ", " "+of+" ") {
		return nil, false
	}
	unordered := len(how) == 3 && how[2] == 'u' && how != "num"
	test, ok := map[string]func(sign int) bool{
		"eq": func(s int) bool { return s == 0 }, "ne": func(s int) bool { return s != 0 },
		"lt": func(s int) bool { return s < 0 }, "le": func(s int) bool { return s <= 0 },
		"gt": func(s int) bool { return s > 0 }, "ge": func(s int) bool { return s >= 0 },
		"nu": func(int) bool { return true },
	}[how[:2]]
	if how == "nan" {
		test, unordered, ok = func(int) bool { return false }, true, true
	}
	return func(t *thread, i *inst) {
		sign, known := order(t, i)
		t.r[i.d] = 0
		if known && test(sign) || !known && unordered {
			t.r[i.d] = 1
		}
	}, ok
}

func compare[T int32 | uint32 | int64 | uint64 | float32 | float64](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// convert is cvt: an optional rounding mode, then the types of result and operand.
func convert(op string) (func(t *thread, i *inst), bool) {
	parts := strings.Split(op, ".")
	n := len(parts)
	to, from, how := parts[n-2], parts[n-1], ""
	if n == 3 {
		how = parts[0]
	}
	var f func(x uint64) uint64
	switch {
	case from[0] != 'f' && to[0] != 'f':
		f = func(x uint64) uint64 { return cut(uint64(whole(x, from)), to) }
	case from[0] != 'f' && to == "f32" && how == "rn":
		f = func(x uint64) uint64 {
			if from == "u64" {
				return fromSingle(float32(x))
			}
			return fromSingle(float32(whole(x, from)))
		}
	case from[0] != 'f' && to == "f64" && how == "rn":
		f = func(x uint64) uint64 {
			if from == "u64" {
				return fromDouble(float64(x))
			}
			return fromDouble(float64(whole(x, from)))
		}
	case from == "f32" && to == "f64" && how == "":
		f = func(x uint64) uint64 { return fromDouble(float64(single(x))) }
	case from == "f64" && to == "f32" && how == "rn":
		f = func(x uint64) uint64 { return fromSingle(float32(double(x))) }
	case from == to && how == "rni" && to == "f64":
		f = func(x uint64) uint64 { return fromDouble(math.RoundToEven(double(x))) }
	case to == "s32" && (how == "rzi" || how == "rni"):
		f = func(x uint64) uint64 {
			v := double(x)
			if from == "f32" {
				v = float64(single(x))
			}
			if how == "rni" {
				v = math.RoundToEven(v)
			}
			if v != v {
				return 0
			}
			return uint64(uint32(int32(max(math.MinInt32, min(math.MaxInt32, v)))))
		}
	default:
		return nil, false
	}
	return func(t *thread, i *inst) { t.r[i.d] = f(t.r[i.a]) }, true
}

// whole returns a register as an integer of a type.
func whole(x uint64, of string) int64 {
	switch of {
	case "s8":
		return int64(int8(x))
	case "u8":
		return int64(uint8(x))
	case "s16":
		return int64(int16(x))
	case "u16":
		return int64(uint16(x))
	case "s32":
		return int64(int32(x))
	case "u32":
		return int64(uint32(x))
	}
	return int64(x)
}

// cut truncates to the bits of a type; types narrower than 32 bits use 32-bit registers.
func cut(x uint64, to string) uint64 {
	switch to {
	case "u8":
		return uint64(uint8(x))
	case "u16":
		return uint64(uint16(x))
	case "s64", "u64":
		return x
	}
	return uint64(uint32(x))
}

// funnel is shf.l.wrap.b32: the upper half of b:a, shifted left.
func funnel(t *thread, i *inst) {
	n := uint32(t.r[i.c]) & 31
	t.r[i.d] = uint64(uint32((t.r[i.b]<<32 | t.r[i.a]&math.MaxUint32) << n >> 32))
}
