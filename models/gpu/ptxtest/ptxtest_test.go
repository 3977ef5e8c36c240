package ptxtest

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"brood/models/gpu"
)

// text is an entry with a parameter p and 32 bytes of shared memory.
const text = `
.visible .entry k(
	.param .u64 k_param_0,
	.param .u32 k_param_1
)
{
	.shared .align 4 .b8 box[32];
	ld.param.u64 	%%rd1, [k_param_0];
	ld.param.u32 	%%r1, [k_param_1];
	mov.u32 	%%r2, %%tid.x;
	mul.wide.u32 	%%rd2, %%r2, 4;
	mov.u64 	%%rd3, box;
	add.s64 	%%rd4, %%rd3, %%rd2;
	add.s64 	%%rd5, %%rd1, %%rd2;
%s
	ret;
}
`

// try runs four work items of a body on 16 bytes of memory, and returns the memory.
func try(t *testing.T, body string) ([]byte, error) {
	t.Helper()
	d := New()
	m, err := d.Alloc(16)
	if err != nil {
		t.Fatal(err)
	}
	if d.kernels, err = d.parse(fmt.Sprintf(text, body)); err != nil {
		return nil, err
	}
	if err := d.Launch(1, [3]int{1, 1, 1}, 4, m, uint32(7)); err != nil {
		return nil, err
	}
	p := make([]byte, 16)
	return p, d.Read(p, m, 0)
}

// TestFaults: accesses that a card may allow are faults that name the instruction.
func TestFaults(t *testing.T) {
	for body, want := range map[string]string{
		"st.global.u32 [%rd5], %r2;": "",
		"st.shared.u32 [%rd4], %r2;\nbar.sync 0;\nld.shared.u32 %r3, [%rd3];\nst.global.u32 [%rd5], %r3;": "",
		"st.shared.u32 [%rd4], %r2;\nld.shared.u32 %r3, [%rd3];":                                          "work items 0 and 1 meet at byte 0 of shared memory",
		"ld.shared.u32 %r3, [%rd3];\nst.shared.u32 [%rd4], %r2;":                                          "work items 0 and 1 meet at byte 0",
		"ld.shared.u32 %r3, [%rd3+4];\nst.shared.u32 [%rd4], %r2;":                                        "work item 1 writes byte 4",
		"st.global.u32 [%rd5+4], %r2;":                                                                    "4 bytes at 16 of a piece of 16",
		"ld.global.u32 %r3, [%rd5+-4];":                                                                   "[%rd5+-4]",
		"st.global.u32 [%rd5+2], %r2;":                                                                    "4 bytes at 2, which is not aligned",
		"ld.global.u32 %r3, [%rd2];":                                                                      "4 bytes at 0 of a piece of 0",
		"setp.lt.u32 %p1, %r2, 2;\n@%p1 bra $L;\nbar.sync 0;\n$L:":                                        "2 of 4 work items do not reach a barrier",
		"div.u32 %r3, %r1, %r9;":                                                                          "a division by 0",
		"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%r4,%r4,%r4,%r4},{%r4,%r4,%r4,%r4},{%r4,%r4},{%r4,%r4,%r4,%r4};": "4 of the 32 work items of a warp meet there",
		"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%r4,%r4,%r4,%r4},{%r4,%r4},{%r4,%r4},{%r4,%r4,%r4,%r4};":         "12 registers where 14 are taken",
		"mma.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32 {%r4},{%r4},{%r4},{%r4};":                                        "there is no mma.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32 here",
		"vote.sync.any.pred %p1": "there is no vote.sync.any.pred here",
		"bra $M;":                "there is no label $M",
		"ld.param.u32 %r3, [q];": "there is no parameter q",
	} {
		_, err := try(t, body)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
}

// TestOwnFaults: a panic of the interpreter itself is not a successful launch.
func TestOwnFaults(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a kernel without code runs")
		}
	}()
	d := New()
	d.kernels = []*kernel{{name: "empty"}}
	_ = d.Launch(1, [3]int{1, 1, 1}, 1)
}

// TestInstructionsMean executes one instruction each. tf32 rounds ties away from zero, bf16 to even, and the first of
// two operands becomes the upper half.
func TestInstructionsMean(t *testing.T) {
	for body, want := range map[string]uint32{
		"selp.b32 %r1, %r1, %r2, %p9;":                                        0,
		"setp.leu.f32 %p1, 0f7FC00000, 0f00000000;\nselp.u32 %r1, 1, 0, %p1;": 1,
		"setp.le.f32 %p1, 0f7FC00000, 0f00000000;\nselp.u32 %r1, 1, 0, %p1;":  0,
		"setp.num.f32 %p1, 0f7FC00000, 0f00000000;\nselp.u32 %r1, 1, 0, %p1;": 0,
		"setp.lt.s32 %p1, -1, %r1;\nselp.u32 %r1, 1, 0, %p1;":                 1,
		"setp.lt.u32 %p1, -1, %r1;\nselp.u32 %r1, 1, 0, %p1;":                 0,
		"shf.l.wrap.b32 %r1, -2147483648, -2147483648, 1;":                    1,
		"shr.s32 %r1, -8, 2;":     0xfffffffe,
		"shr.u32 %r1, -8, 28;":    15,
		"bfe.s32 %r1, 240, 4, 4;": 0xffffffff,
		"bfe.u32 %r1, 240, 4, 4;": 15,
		"mov.u16 %rs1, 9;\nshl.b16 %rs2, %rs1, 14;\ncvt.u32.u16 %r1, %rs2;":     0x4000,
		"sub.s16 %rs2, 1, 2;\ncvt.u32.u16 %r1, %rs2;":                           0xffff,
		"add.s16 %rs2, 65535, 3;\ncvt.u32.u16 %r1, %rs2;":                       2,
		"div.u16 %rs2, 65535, 2;\ncvt.u32.u16 %r1, %rs2;":                       32767,
		"mul.hi.u32 %r1, -1, -1;":                                               0xfffffffe,
		"cvt.s32.s8 %r1, 255;":                                                  0xffffffff,
		"cvt.rzi.s32.f32 %r1, 0fC0200000;":                                      0xfffffffe,
		"cvt.rzi.s32.f32 %r1, 0f7FC00000;":                                      0,
		"max.f32 %r1, 0f7FC00000, 0fBF800000;":                                  math.Float32bits(-1),
		"max.f32 %r1, 0f80000000, 0f00000000;":                                  0,
		"max.f32 %r1, 0fBF800000, 0f3F800000;":                                  math.Float32bits(1),
		"cvt.rn.f32.u32 %r1, -1;":                                               math.Float32bits(1 << 32),
		"cvt.rni.f64.f64 %rd9, 0d4004000000000000;\ncvt.rzi.s32.f64 %r1, %rd9;": 2,
		"cvt.rna.tf32.f32 %r1, 0f3F801000;":                                     0x3f802000,
		"cvt.rna.tf32.f32 %r1, 0fBF801000;":                                     0xbf802000,
		"cvt.rna.tf32.f32 %r1, 0f3F800FFF;":                                     0x3f800000,
		"cvt.rna.tf32.f32 %r1, 0f7FC12345;":                                     0x7fffffff,
		"cvt.rna.tf32.f32 %r1, 0fFF800000;":                                     0xff800000,
		"cvt.rn.bf16x2.f32 %r1, 0f3F808000, 0f3F818000;":                        0x3f803f82,
		"cvt.rn.bf16x2.f32 %r1, 0f7FC12345, 0f7F7FFFFF;":                        0x7fff7f80,
		"{ .reg .b32 tmp; mov.b64 {tmp, %r1}, 38654705664; }":                   9,
		"@!%p9 bra $L;\nmov.b32 %r1, 1;\n$L:":                                   7,
	} {
		p, err := try(t, body+"\nst.global.u32 [%rd5], %r1;")
		if err != nil {
			t.Errorf("%s: %v", body, err)
		} else if got := uint32(word(p[:4], false)); got != want {
			t.Errorf("%s: %#x, want %#x", body, got, want)
		}
	}
}

// TestFused: a product and a sum are rounded once.
func TestFused(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 100000 {
		var v [3]float32
		for i := range v {
			v[i] = float32(math.Ldexp(r.Float64()-0.5, r.IntN(60)-30))
		}
		if r.IntN(2) == 0 { // the sum almost cancels
			v[2] = -v[0]*v[1] + float32(math.Ldexp(r.Float64()-0.5, r.IntN(200)-160))
		}
		exact := func(x float32) *big.Float { return new(big.Float).SetPrec(800).SetFloat64(float64(x)) }
		x := exact(v[0])
		want, _ := x.Add(x.Mul(x, exact(v[1])), exact(v[2])).Float32()
		if got := fused(v[0], v[1], v[2]); got != want {
			t.Fatalf("%g*%g+%g = %g, want %g", v[0], v[1], v[2], got, want)
		}
	}
}

// TestFreedMemory: access to freed memory, or past the end, fails.
func TestFreedMemory(t *testing.T) {
	d := New()
	m, err := d.Alloc(16)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Write(m, 8, make([]byte, 9)); err == nil {
		t.Error("a write behind the end")
	}
	d.Free(m)
	if err := d.Read(make([]byte, 1), m, 0); err == nil {
		t.Error("it is read")
	}
	var _ gpu.Device = d
}
