package kernel

import (
	"math"
	"testing"
)

func TestRowDots(t *testing.T) {
	each(t, func(t *testing.T, k *Kernels) {
		for _, s := range [][2]int{{1, 32}, {3, 31}, {8, 64}, {9, 256}, {128, 96}, {13, 1056}} {
			m, kk := s[0], s[1]
			lda, ldd := kk+5, 3
			a, b, dst := normals(random(m, kk), m*lda), normals(random(kk), kk), guarded(t, (m-1)*ldd+1)
			fillWith(dst, 7)
			k.RowDots(dst, ldd, m, kk, a, lda, b)
			for i := range dst {
				want, size := 7.0, 7.0
				if i%ldd == 0 {
					for q, v := range b {
						p := float64(v) * float64(a[i/ldd*lda+q])
						want, size = want+p, size+math.Abs(p)
					}
				}
				if math.Abs(float64(dst[i])-want) > size*1e-7*math.Sqrt(float64(kk)) || i%ldd != 0 && dst[i] != 7 {
					t.Fatalf("%v: element %d is %v, want %v", s, i, dst[i], want)
				}
			}
			alone := []float32{7} // a row does not depend on the others
			k.RowDots(alone, 1, 1, kk, a[(m-1)*lda:], lda, b)
			sameBits(t, "row alone", alone, dst[len(dst)-1:])
		}
	})
}
