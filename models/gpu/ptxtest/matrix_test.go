package ptxtest

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// The fragment layouts in NVIDIA's PTX ISA 7.0 (matrix fragments for mma.m16n8k8 with .tf32, and for mma.m16n8k16 with
// .bf16): for each row and column of a matrix the lane and, after the point, the element of the lane's fragment. Two
// .bf16 elements share a register, the first in its lower half.
const (
	leftTF32 = `
0.0 1.0 2.0 3.0 0.2 1.2 2.2 3.2
4.0 5.0 6.0 7.0 4.2 5.2 6.2 7.2
8.0 9.0 10.0 11.0 8.2 9.2 10.2 11.2
12.0 13.0 14.0 15.0 12.2 13.2 14.2 15.2
16.0 17.0 18.0 19.0 16.2 17.2 18.2 19.2
20.0 21.0 22.0 23.0 20.2 21.2 22.2 23.2
24.0 25.0 26.0 27.0 24.2 25.2 26.2 27.2
28.0 29.0 30.0 31.0 28.2 29.2 30.2 31.2
0.1 1.1 2.1 3.1 0.3 1.3 2.3 3.3
4.1 5.1 6.1 7.1 4.3 5.3 6.3 7.3
8.1 9.1 10.1 11.1 8.3 9.3 10.3 11.3
12.1 13.1 14.1 15.1 12.3 13.3 14.3 15.3
16.1 17.1 18.1 19.1 16.3 17.3 18.3 19.3
20.1 21.1 22.1 23.1 20.3 21.3 22.3 23.3
24.1 25.1 26.1 27.1 24.3 25.3 26.3 27.3
28.1 29.1 30.1 31.1 28.3 29.3 30.3 31.3`
	rightTF32 = `
0.0 4.0 8.0 12.0 16.0 20.0 24.0 28.0
1.0 5.0 9.0 13.0 17.0 21.0 25.0 29.0
2.0 6.0 10.0 14.0 18.0 22.0 26.0 30.0
3.0 7.0 11.0 15.0 19.0 23.0 27.0 31.0
0.1 4.1 8.1 12.1 16.1 20.1 24.1 28.1
1.1 5.1 9.1 13.1 17.1 21.1 25.1 29.1
2.1 6.1 10.1 14.1 18.1 22.1 26.1 30.1
3.1 7.1 11.1 15.1 19.1 23.1 27.1 31.1`
	leftBF16 = `
0.0 0.1 1.0 1.1 2.0 2.1 3.0 3.1 0.4 0.5 1.4 1.5 2.4 2.5 3.4 3.5
4.0 4.1 5.0 5.1 6.0 6.1 7.0 7.1 4.4 4.5 5.4 5.5 6.4 6.5 7.4 7.5
8.0 8.1 9.0 9.1 10.0 10.1 11.0 11.1 8.4 8.5 9.4 9.5 10.4 10.5 11.4 11.5
12.0 12.1 13.0 13.1 14.0 14.1 15.0 15.1 12.4 12.5 13.4 13.5 14.4 14.5 15.4 15.5
16.0 16.1 17.0 17.1 18.0 18.1 19.0 19.1 16.4 16.5 17.4 17.5 18.4 18.5 19.4 19.5
20.0 20.1 21.0 21.1 22.0 22.1 23.0 23.1 20.4 20.5 21.4 21.5 22.4 22.5 23.4 23.5
24.0 24.1 25.0 25.1 26.0 26.1 27.0 27.1 24.4 24.5 25.4 25.5 26.4 26.5 27.4 27.5
28.0 28.1 29.0 29.1 30.0 30.1 31.0 31.1 28.4 28.5 29.4 29.5 30.4 30.5 31.4 31.5
0.2 0.3 1.2 1.3 2.2 2.3 3.2 3.3 0.6 0.7 1.6 1.7 2.6 2.7 3.6 3.7
4.2 4.3 5.2 5.3 6.2 6.3 7.2 7.3 4.6 4.7 5.6 5.7 6.6 6.7 7.6 7.7
8.2 8.3 9.2 9.3 10.2 10.3 11.2 11.3 8.6 8.7 9.6 9.7 10.6 10.7 11.6 11.7
12.2 12.3 13.2 13.3 14.2 14.3 15.2 15.3 12.6 12.7 13.6 13.7 14.6 14.7 15.6 15.7
16.2 16.3 17.2 17.3 18.2 18.3 19.2 19.3 16.6 16.7 17.6 17.7 18.6 18.7 19.6 19.7
20.2 20.3 21.2 21.3 22.2 22.3 23.2 23.3 20.6 20.7 21.6 21.7 22.6 22.7 23.6 23.7
24.2 24.3 25.2 25.3 26.2 26.3 27.2 27.3 24.6 24.7 25.6 25.7 26.6 26.7 27.6 27.7
28.2 28.3 29.2 29.3 30.2 30.3 31.2 31.3 28.6 28.7 29.6 29.7 30.6 30.7 31.6 31.7`
	rightBF16 = `
0.0 4.0 8.0 12.0 16.0 20.0 24.0 28.0
0.1 4.1 8.1 12.1 16.1 20.1 24.1 28.1
1.0 5.0 9.0 13.0 17.0 21.0 25.0 29.0
1.1 5.1 9.1 13.1 17.1 21.1 25.1 29.1
2.0 6.0 10.0 14.0 18.0 22.0 26.0 30.0
2.1 6.1 10.1 14.1 18.1 22.1 26.1 30.1
3.0 7.0 11.0 15.0 19.0 23.0 27.0 31.0
3.1 7.1 11.1 15.1 19.1 23.1 27.1 31.1
0.2 4.2 8.2 12.2 16.2 20.2 24.2 28.2
0.3 4.3 8.3 12.3 16.3 20.3 24.3 28.3
1.2 5.2 9.2 13.2 17.2 21.2 25.2 29.2
1.3 5.3 9.3 13.3 17.3 21.3 25.3 29.3
2.2 6.2 10.2 14.2 18.2 22.2 26.2 30.2
2.3 6.3 10.3 14.3 18.3 22.3 26.3 30.3
3.2 7.2 11.2 15.2 19.2 23.2 27.2 31.2
3.3 7.3 11.3 15.3 19.3 23.3 27.3 31.3`
	sums = `
0.0 0.1 1.0 1.1 2.0 2.1 3.0 3.1
4.0 4.1 5.0 5.1 6.0 6.1 7.0 7.1
8.0 8.1 9.0 9.1 10.0 10.1 11.0 11.1
12.0 12.1 13.0 13.1 14.0 14.1 15.0 15.1
16.0 16.1 17.0 17.1 18.0 18.1 19.0 19.1
20.0 20.1 21.0 21.1 22.0 22.1 23.0 23.1
24.0 24.1 25.0 25.1 26.0 26.1 27.0 27.1
28.0 28.1 29.0 29.1 30.0 30.1 31.0 31.1
0.2 0.3 1.2 1.3 2.2 2.3 3.2 3.3
4.2 4.3 5.2 5.3 6.2 6.3 7.2 7.3
8.2 8.3 9.2 9.3 10.2 10.3 11.2 11.3
12.2 12.3 13.2 13.3 14.2 14.3 15.2 15.3
16.2 16.3 17.2 17.3 18.2 18.3 19.2 19.3
20.2 20.3 21.2 21.3 22.2 22.3 23.2 23.3
24.2 24.3 25.2 25.3 26.2 26.3 27.2 27.3
28.2 28.3 29.2 29.3 30.2 30.3 31.2 31.3`
)

// fragment returns the lane and the element of each matrix element.
func fragment(t *testing.T, table string, rows, cols int) (of [][][2]int) {
	t.Helper()
	seen := map[string]bool{}
	for line := range strings.Lines(strings.TrimSpace(table)) {
		var row [][2]int
		for _, s := range strings.Fields(line) {
			lane, e, ok := strings.Cut(s, ".")
			a, err := strconv.Atoi(lane)
			b, other := strconv.Atoi(e)
			if !ok || err != nil || other != nil || seen[s] {
				t.Fatalf("%q in a table", s)
			}
			seen[s] = true
			row = append(row, [2]int{a, b})
		}
		if len(row) != cols {
			t.Fatalf("a row of %d", len(row))
		}
		of = append(of, row)
	}
	if len(of) != rows {
		t.Fatalf("%d rows", len(of))
	}
	return of
}

// one is a kernel that loads ten registers, executes an instruction, and stores four.
const one = `
.visible .entry k(
	.param .u64 k_param_0
)
{
	ld.param.u64 	%%rd1, [k_param_0];
	mov.u32 	%%r2, %%tid.x;
	mul.wide.u32 	%%rd2, %%r2, 64;
	add.s64 	%%rd3, %%rd1, %%rd2;
	ld.global.v4.u32 	{%%r10,%%r11,%%r12,%%r13}, [%%rd3];
	ld.global.v2.u32 	{%%r14,%%r15}, [%%rd3+16];
	ld.global.v4.u32 	{%%r16,%%r17,%%r18,%%r19}, [%%rd3+32];
	%s {%%r20,%%r21,%%r22,%%r23},{%%r10,%%r11,%%r12,%%r13},{%%r14,%%r15},{%%r16,%%r17,%%r18,%%r19};
	st.global.v4.u32 	[%%rd3+48], {%%r20,%%r21,%%r22,%%r23};
	ret;
}
`

// TestFragments: a warp's product equals the product of the matrices that the tables assemble from its registers.
func TestFragments(t *testing.T) {
	for _, c := range []struct {
		op          string
		each        int
		left, right string
	}{
		{"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 1, leftTF32, rightTF32},
		{"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 2, leftBF16, rightBF16},
	} {
		deep := 8 * c.each
		left, right, sum := fragment(t, c.left, 16, deep), fragment(t, c.right, deep, 8), fragment(t, sums, 16, 8)
		r := rand.New(rand.NewPCG(1, 2))
		memory := make([]byte, 32*64)
		matrix := func(at int, of [][][2]int, each int) [][]float64 {
			out := make([][]float64, len(of))
			for i, row := range of {
				for _, place := range row {
					x := float32(r.IntN(255) - 127)
					out[i] = append(out[i], float64(x))
					p := memory[64*place[0]+at+4*(place[1]/each):]
					w := binary.LittleEndian.Uint32(p)
					if each == 1 {
						w = math.Float32bits(x)
					} else {
						w |= math.Float32bits(x) >> 16 << (16 * (place[1] % 2))
					}
					binary.LittleEndian.PutUint32(p, w)
				}
			}
			return out
		}
		a, b, s := matrix(0, left, c.each), matrix(16, right, c.each), matrix(32, sum, 1)
		d := New()
		m, err := d.Alloc(len(memory))
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Write(m, 0, memory); err != nil {
			t.Fatal(err)
		}
		if d.kernels, err = d.parse(fmt.Sprintf(one, c.op)); err != nil {
			t.Fatal(err)
		}
		if err := d.Launch(1, [3]int{1, 1, 1}, 32, m); err != nil {
			t.Fatal(err)
		}
		if err := d.Read(memory, m, 0); err != nil {
			t.Fatal(err)
		}
		for i, row := range sum {
			for j, place := range row {
				want := s[i][j]
				for k := range deep {
					want += a[i][k] * b[k][j]
				}
				if got := math.Float32frombits(binary.LittleEndian.Uint32(memory[64*place[0]+48+4*place[1]:])); float64(
					got) != want {
					t.Fatalf("%s: row %d, column %d is %g, want %g", c.op, i, j, got, want)
				}
			}
		}
	}
}
