package ptxtest

import (
	"encoding/binary"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// kernel is an entry of a PTX text.
type kernel struct {
	name       string
	places     []int // offsets of the parameters
	paramBytes int   // size of all parameters in bytes
	code       []inst
	first      []uint64 // initial registers: constants have their values, all others 0
	sizes      [12]int  // numbers of the registers of %tid, %ntid, %ctaid and %nctaid, each x, y and z
	shared     int      // shared memory in bytes
	local      int

	launches int
}

// inst is an instruction. Registers are indices of kernel.first.
type inst struct {
	do      func(t *thread, i *inst)
	all     func(warp []thread, i *inst) // executed by a whole warp
	d       int
	a, b, c int
	guard   int // predicate; -1: always executed
	unless  bool
	target  int   // index of a jump's target
	vector  []int // registers of a vector, or of all fragments in sequence
	bytes   int   // size of each element of an access
	signed  bool
	text    string
}

// reader parses one entry.
type reader struct {
	*kernel
	regs   map[string]int
	labels map[string]int
	jumps  map[int]string
	places map[string]uint64 // addresses by name
	params map[string]int
}

var (
	entry    = regexp.MustCompile(`^\.visible \.entry (\w+)\($`)
	function = regexp.MustCompile(`^(\.visible )?\.func\b`)
	param    = regexp.MustCompile(`^\.param \.[uf](\d+) (\w+),?$`)
	storage  = regexp.MustCompile(`^\.(shared|local) \.align (\d+) \.b8 +([\w$]+)\[(\d+)\]$`)
	constant = regexp.MustCompile(`^\.visible \.const \.align \d+ \.b8 (\w+)\[\d+\] = \{(.*)\}$`)
	label    = regexp.MustCompile(`^(\$\w+):$`)
)

// parse returns the entries of a text. It ignores functions: clang inlines those that entries call.
func (d *Device) parse(text string) (found []*kernel, err error) {
	names := map[string]uint64{}
	var r *reader
	skip := false
	for n, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "//")
		for statement := range strings.SplitSeq(line, ";") {
			s := strings.TrimSpace(strings.ReplaceAll(statement, "\t", " "))
			if strings.HasPrefix(s, "{ .reg") {
				s = s[2:]
			}
			if m := entry.FindStringSubmatch(s); m != nil {
				r = &reader{&kernel{name: m[1]}, map[string]int{}, map[string]int{}, map[int]string{}, names, map[string]int{}}
				continue
			}
			switch {
			case function.MatchString(s):
				skip = true
			case s == "}" && skip && strings.TrimSpace(line) == "}":
				skip = false
			case s == "}" && r != nil && strings.TrimSpace(line) == "}":
				if err := r.end(); err != nil {
					return nil, fmt.Errorf("kernel %s: %w", r.name, err)
				}
				found, r = append(found, r.kernel), nil
			case skip || s == "" || s == ")" || s == "{" || s == "}":
			case r == nil:
				if m := constant.FindStringSubmatch(s); m != nil {
					if names[m[1]], err = d.constant(m[2]); err != nil {
						return nil, fmt.Errorf("line %d: %w", n+1, err)
					}
				}
			default:
				if err := r.statement(s); err != nil {
					return nil, fmt.Errorf("line %d: %s: %w", n+1, s, err)
				}
			}
		}
	}
	return found, nil
}

// constant stores a list of bytes and returns its address.
func (d *Device) constant(list string) (uint64, error) {
	var p []byte
	for s := range strings.SplitSeq(list, ",") {
		x, err := strconv.ParseUint(strings.TrimSpace(s), 10, 8)
		if err != nil {
			return 0, err
		}
		p = append(p, byte(x))
	}
	m, err := d.Alloc(len(p))
	if err == nil {
		err = d.Write(m, 0, p)
	}
	return uint64(m), err
}

func (r *reader) statement(s string) error {
	if m := param.FindStringSubmatch(s); m != nil {
		size, _ := strconv.Atoi(m[1])
		size /= 8
		r.paramBytes = (r.paramBytes + size - 1) / size * size
		r.kernel.places = append(r.kernel.places, r.paramBytes)
		r.params[m[2]] = r.paramBytes
		r.paramBytes += size
		return nil
	}
	if m := storage.FindStringSubmatch(s); m != nil {
		align, _ := strconv.Atoi(m[2])
		size, _ := strconv.Atoi(m[4])
		at, space := &r.shared, sharedPiece
		if m[1] == "local" {
			at, space = &r.local, localPiece
		}
		*at = (*at + align - 1) / align * align
		r.places[m[3]] = uint64(space)<<places + uint64(*at)
		*at += size
		return nil
	}
	if m := label.FindStringSubmatch(s); m != nil {
		r.labels[m[1]] = len(r.code)
		return nil
	}
	if strings.HasPrefix(s, ".reg") || strings.HasPrefix(s, ".pragma") {
		return nil
	}
	return r.instruction(s)
}

func (r *reader) instruction(s string) error {
	i := inst{guard: -1, text: s}
	if s[0] == '@' {
		guard, rest, _ := strings.Cut(s[1:], " ")
		i.unless = guard[0] == '!'
		i.guard = r.register(strings.TrimPrefix(guard, "!"))
		s = strings.TrimSpace(rest)
	}
	op, rest, _ := strings.Cut(s, " ")
	args := operands(rest)
	if op == "bra" || op == "bra.uni" {
		r.jumps[len(r.code)] = args[0]
		i.do = jump
		r.code = append(r.code, i)
		return nil
	}
	if strings.HasPrefix(op, "ld.") || strings.HasPrefix(op, "st.") || strings.HasPrefix(op, "atom.") {
		return r.access(i, op, args)
	}
	if op == "mov.b64" && args[0][0] == '{' { // two halves
		i.do = halves
		i.vector = r.vector(args[0])
		x, err := r.operand(args[1])
		i.a = x
		r.code = append(r.code, i)
		return err
	}
	if all, ok := matrices[op]; ok {
		i.do, i.all = gather, all
		for _, arg := range args {
			i.vector = append(i.vector, r.vector(arg)...)
		}
		if len(i.vector) != 14 {
			return fmt.Errorf("%d registers where 14 are taken", len(i.vector))
		}
		r.code = append(r.code, i)
		return nil
	}
	do, ok := operation(op)
	if !ok {
		return fmt.Errorf("there is no %s here", op)
	}
	i.do = do
	for n, arg := range args {
		x, err := r.operand(arg)
		if err != nil {
			return err
		}
		*[]*int{&i.d, &i.a, &i.b, &i.c}[n] = x
	}
	r.code = append(r.code, i)
	return nil
}

// operands splits at commas outside of brackets.
func operands(s string) (out []string) {
	deep, from := 0, 0
	for i, c := range s {
		switch c {
		case '{', '[':
			deep++
		case '}', ']':
			deep--
		case ',':
			if deep == 0 {
				out = append(out, strings.TrimSpace(s[from:i]))
				from = i + 1
			}
		}
	}
	if s = strings.TrimSpace(s[from:]); s != "" {
		out = append(out, s)
	}
	return out
}

// register returns the number of a register name, a new one for a new name.
func (r *reader) register(name string) int {
	i, ok := r.regs[name]
	if !ok {
		i = len(r.first)
		r.regs[name] = i
		r.first = append(r.first, 0)
	}
	return i
}

// vector returns the registers in braces.
func (r *reader) vector(s string) (out []int) {
	for name := range strings.SplitSeq(strings.Trim(s, "{}"), ",") {
		out = append(out, r.register(strings.TrimSpace(name)))
	}
	return out
}

var bitsOf = regexp.MustCompile(`^0[fFdD][0-9A-Fa-f]+$`)

// operand returns the register of an operand; a number or the address of a name gets a register that holds it.
func (r *reader) operand(s string) (int, error) {
	if s[0] == '%' {
		return r.register(s), nil
	}
	i, ok := r.regs["="+s]
	if ok {
		return i, nil
	}
	var x uint64
	var err error
	switch at, known := r.places[s]; {
	case known:
		x = at
	case bitsOf.MatchString(s):
		x, err = strconv.ParseUint(s[2:], 16, 64)
	default:
		var v int64
		if v, err = strconv.ParseInt(s, 0, 64); err != nil {
			x, err = strconv.ParseUint(s, 0, 64)
		} else {
			x = uint64(v)
		}
	}
	i = r.register("=" + s)
	r.first[i] = x
	return i, err
}

// access parses a load, a store, or an atomic or.
func (r *reader) access(i inst, op string, args []string) error {
	parts := strings.Split(op, ".")
	kind := parts[len(parts)-1]
	size, err := strconv.Atoi(kind[1:])
	if err != nil {
		return err
	}
	i.bytes, i.signed = size/8, kind[0] == 's'
	where, what := args[1], args[0]
	if parts[0] == "st" {
		where, what = args[0], args[1]
	}
	if what[0] == '{' {
		i.vector = r.vector(what)
	} else {
		x, err := r.operand(what)
		if err != nil {
			return err
		}
		i.vector = []int{x}
	}
	base, offset, _ := strings.Cut(strings.Trim(where, "[]"), "+")
	more := 0
	if offset != "" {
		if more, err = strconv.Atoi(offset); err != nil {
			return err
		}
	}
	if parts[1] == "param" {
		at, ok := r.params[base]
		if !ok || parts[0] != "ld" {
			return fmt.Errorf("there is no parameter %s", base)
		}
		i.do, i.target = loadParam, at+more
		r.code = append(r.code, i)
		return nil
	}
	if i.a, err = r.operand(base); err != nil {
		return err
	}
	i.target = more
	switch {
	case parts[0] == "ld":
		i.do = load
	case parts[0] == "st":
		i.do = store
	case op == "atom.global.or.b32":
		i.do = atomicOr
		if i.b, err = r.operand(args[2]); err != nil {
			return err
		}
	default:
		return fmt.Errorf("there is no %s here", op)
	}
	r.code = append(r.code, i)
	return nil
}

// end resolves jump targets, and assigns registers to the special registers of a work item.
func (r *reader) end() error {
	for at, name := range r.jumps {
		to, ok := r.labels[name]
		if !ok {
			return fmt.Errorf("there is no label %s", name)
		}
		r.code[at].target = to
	}
	for n, name := range []string{"tid", "ntid", "ctaid", "nctaid"} {
		for axis, letter := range "xyz" {
			r.sizes[3*n+axis] = r.register(fmt.Sprintf("%%%s.%c", name, letter))
		}
	}
	return nil
}

// word converts n bytes to a register value.
func word(p []byte, signed bool) uint64 {
	switch len(p) {
	case 1:
		if signed {
			return uint64(uint32(int32(int8(p[0]))))
		}
		return uint64(p[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(p))
	case 4:
		return uint64(binary.LittleEndian.Uint32(p))
	}
	return binary.LittleEndian.Uint64(p)
}

// put stores the low bytes of a register.
func put(p []byte, x uint64) {
	switch len(p) {
	case 1:
		p[0] = byte(x)
	case 2:
		binary.LittleEndian.PutUint16(p, uint16(x))
	case 4:
		binary.LittleEndian.PutUint32(p, uint32(x))
	default:
		binary.LittleEndian.PutUint64(p, x)
	}
}

// single and double convert a register to a float, fromSingle and fromDouble a float to a register.
func single(x uint64) float32     { return math.Float32frombits(uint32(x)) }
func double(x uint64) float64     { return math.Float64frombits(x) }
func fromSingle(x float32) uint64 { return uint64(math.Float32bits(x)) }
func fromDouble(x float64) uint64 { return math.Float64bits(x) }
