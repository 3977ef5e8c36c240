package kernel

import "github.com/klauspost/cpuid/v2"

// caches are the sizes in bytes of a core's first- and second-level data caches. They decide how operands are cut and
// packed, and never a bit of a result.
type caches struct{ l1, l2 int }

// smallest are the sizes assumed where the processor does not report its own.
var smallest = caches{32 << 10, 512 << 10}

// processorCaches returns the sizes that this processor reports.
func processorCaches() caches {
	c := caches{cpuid.CPU.Cache.L1D, cpuid.CPU.Cache.L2}
	if c.l1 <= 0 || c.l2 <= 0 {
		return smallest
	}
	return c
}

const (
	lineBytes = 64      // of a cache
	pageBytes = 1 << 12 // in all ways of a first-level cache together, as lines are found by the offset in a page
)

// conflict reports whether lines at a distance of ld elements, of equal size and read together, find too little room in
// the first-level cache: at a multiple of a power of two, they all belong into few of its sets.
func (c caches) conflict(lines, ld int) bool {
	const sets = pageBytes / lineBytes
	used := sets
	for distance := 4 * ld; used > 1 && distance%(2*lineBytes) == 0; distance /= 2 {
		used /= 2
	}
	ways := c.l1 / pageBytes
	return lines > used*ways/2
}

// steps returns the number of steps of k of one cut of a product, at most maxK. Where tiles do not prefetch B, a panel
// of it and the rows of two tiles of A fit into the first-level cache, and cuts are even. A product that is added to C
// has cuts of maxK, since each of them rounds.
func (k *Kernels) steps(kk int, add bool) int {
	if kk == 0 {
		return 1
	}
	if add || !k.isa.near {
		return min(kk, maxK)
	}
	limit := min(maxK, k.caches.l1/(4*(k.isa.width+2*k.isa.height)))
	cuts := (kk + limit - 1) / limit
	return ((kk+cuts-1)/cuts + 3) &^ 3
}

// scattered reports whether lines of ld elements from step to step of a cut find too little room in the first-level
// cache, and tiles do not prefetch them.
func (k *Kernels) scattered(kk, ld int) bool {
	return k.isa.near && k.caches.conflict(k.steps(kk, false), ld)
}

// rowsA returns the number of rows of A with this many steps that are multiplied by all panels of B before the next
// rows: they take nearly half of the second-level cache.
func (k *Kernels) rowsA(steps int) int {
	return (k.scratchA() - 16) / max(1, steps) / k.isa.height * k.isa.height
}

// scratchA returns the size of the packed rows of A, with room for what the last copy writes beyond them.
func (k *Kernels) scratchA() int { return max(7*k.caches.l2/64, k.isa.height*maxK) + 16 }
