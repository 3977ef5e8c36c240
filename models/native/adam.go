package native

import (
	"brood/models/engine"
	"brood/models/native/kernel"
)

// adam is Adam (Kingma & Ba 2015, algorithm 1) with decoupled weight decay (Loshchilov & Hutter 2019): X first shrinks
// by Eta*WD*X, and the decay does not enter the moments. G has one row per entry of Rows, or rows like X.
func (v *Vector) adam(t engine.Adam) error {
	step := adamStep(&t)
	v.split(t.X.Cols, tile, 8*len(t.Rows), func(k *thread, lo, hi int) {
		for _, r := range t.Rows {
			k.Adam(cut(t.X, r, lo, hi), cut(t.M, r, lo, hi), cut(t.V, r, lo, hi), cut(t.G, r, lo, hi), &step)
		}
	})
	return nil
}

func adamStep(t *engine.Adam) kernel.AdamStep {
	c1, c2 := t.Corrections()
	return kernel.AdamStep{
		B1:  t.B1,
		B2:  t.B2,
		D1:  1 - t.B1,
		D2:  1 - t.B2,
		C1:  c1,
		C2:  c2,
		Eta: t.Eta,
		Eps: t.Eps,
		WD:  t.Eta * t.WD,
	}
}

func (v *Vector) naturalStep(t engine.NaturalStep) error {
	v.split(t.Hi-t.Lo, tile, 8, func(k *thread, lo, hi int) {
		lo, hi = t.Lo+lo, t.Lo+hi
		k.NaturalStep(flat(t.X)[lo:hi], flat(t.S)[lo:hi], flat(t.G)[lo:hi], flat(t.H)[lo:hi], t.Eta, t.Rate)
	})
	return nil
}
