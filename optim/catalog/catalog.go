// Package catalog lists the algorithms that a run can name: the algorithms of this module, and the ones that a program
// of another module adds when it starts.
package catalog

import (
	"fmt"
	"slices"
	"strings"

	"brood/models/usererr"
	"brood/optim"
	"brood/optim/averaging"
	"brood/optim/coupled"
	"brood/optim/evolution"
	"brood/optim/gossip"
	"brood/optim/population"
	"brood/optim/protocol"
)

// added are the algorithms of Add.
var added []*optim.Algorithm

// Add makes algorithms available by name to every part of the process: command line, workbench, workers, replay and
// verification. A program calls it first of all, before another goroutine may look an algorithm up; cli.Main does so
// with its arguments. It refuses a declaration with a mistake and a name that is taken. Coordinator and workers must be
// built with the same algorithms.
func Add(algorithms ...*optim.Algorithm) error {
	for _, a := range algorithms {
		if err := a.Validate(); err != nil {
			return err
		}
		if _, err := Lookup(a.Name); err == nil {
			return fmt.Errorf("algorithm %s: there is one of this name already: choose another", a.Name)
		}
		added = append(added, a)
	}
	return nil
}

// All lists every algorithm: the ones of this module, then the added ones.
func All() []*optim.Algorithm {
	return append([]*optim.Algorithm{
		averaging.DPSGD,
		averaging.DeMo,
		averaging.BGD,
		coupled.Elastic,
		coupled.EASGD,
		coupled.EntropySGD,
		coupled.Parle,
		averaging.LocalSGD,
		averaging.FedAvg,
		averaging.SCAFFOLD,
		averaging.DiLoCo,
		averaging.StreamingDiLoCo,
		averaging.DecoupledDiLoCo,
		gossip.NoLoCo,
		averaging.SparseLoCo,
		averaging.PAPA,
		averaging.WASH,
		averaging.SPARTA,
		gossip.SGP,
		gossip.DPSGD,
		gossip.ADPSGD,
		gossip.PopSGD,
		evolution.OpenAIES,
		evolution.SNES,
		evolution.CMAES,
		evolution.SepCMA,
		evolution.CRFMNES,
		evolution.LMMAES,
		evolution.ARS,
		evolution.PGPE,
		evolution.GuidedES,
		evolution.EGG,
		evolution.HybridES,
		population.GA,
		population.PESGD,
		population.PBT,
		population.PB2,
		protocol.OR,
		protocol.Leader,
		protocol.JuntaLeader,
		protocol.ExactMajority,
		protocol.ApproximateMajority,
		protocol.AverageAndConquer,
		protocol.SplitJoin,
		protocol.GossipMean,
		protocol.Own,
	}, added...)
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
	return nil, usererr.Errorf("there is no algorithm %q%s: choose one of %s, or run the program that has it", name,
		usererr.Suggest(name, names), strings.Join(names, ", "))
}
