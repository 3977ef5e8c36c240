// Package catalog is the one visible list of algorithms. Adding an algorithm is one file in optim and one line here.
package catalog

import (
	"slices"
	"strings"

	"brood/models/usererr"
	"brood/optim"
	"brood/optim/protocol"
)

// All lists every algorithm.
func All() []*optim.Algorithm {
	return []*optim.Algorithm{
		optim.DPSGD,
		optim.DeMo,
		optim.BGD,
		optim.Elastic,
		optim.EASGD,
		optim.EntropySGD,
		optim.Parle,
		optim.LocalSGD,
		optim.DiLoCo,
		optim.StreamingDiLoCo,
		optim.NoLoCo,
		optim.SparseLoCo,
		optim.PAPA,
		optim.WASH,
		optim.SGP,
		optim.ADPSGD,
		optim.PopSGD,
		optim.OpenAIES,
		optim.SNES,
		optim.SepCMA,
		optim.CRFMNES,
		optim.LMMAES,
		optim.ARS,
		optim.PGPE,
		optim.GuidedES,
		optim.EGG,
		optim.HybridES,
		optim.GA,
		optim.PESGD,
		optim.PBT,
		optim.PB2,
		protocol.OR,
		protocol.Leader,
		protocol.ExactMajority,
		protocol.ApproximateMajority,
		protocol.AverageAndConquer,
		protocol.GossipMean,
		protocol.Own,
	}
}

// Lookup finds an algorithm by name; the error lists the names.
func Lookup(name string) (*optim.Algorithm, error) {
	all := All()
	if i := slices.IndexFunc(all, func(a *optim.Algorithm) bool { return a.Name == name }); i >= 0 {
		return all[i], nil
	}
	var names []string
	for _, a := range all {
		names = append(names, a.Name)
	}
	return nil, usererr.Errorf("there is no algorithm %q%s: choose one of %s", name, usererr.Suggest(name, names), strings.Join(names, ", "))
}
