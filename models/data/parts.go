package data

import (
	"cmp"
	"slices"

	"brood/models/noise"
)

// LabelShards divides samples into n parts of each shards: the samples, sorted by label, are cut into n*each shards of
// equal size, and every part receives each of them at random (McMahan et al.: Communication-efficient learning of deep
// networks from decentralized data, 2017). ids must have n*each samples or more. The result is a pure function of the
// arguments; the caller owns it.
func LabelShards(ids []int32, label func(id int32) int32, n, each int, key noise.Key) [][]int32 {
	sorted := slices.Clone(ids)
	slices.SortStableFunc(sorted, func(a, b int32) int { return cmp.Compare(label(a), label(b)) })
	parts := make([][]int32, n)
	for i, shard := range key.Shuffle(n * each) {
		lo, hi := shard*len(sorted)/(n*each), (shard+1)*len(sorted)/(n*each)
		parts[i/each] = append(parts[i/each], sorted[lo:hi]...)
	}
	return parts
}

// Dirichlet divides samples into n parts whose shares of each label are drawn from a symmetric Dirichlet distribution
// with concentration alpha > 0: a small alpha gives most samples of a label to one part, a large one gives all parts
// equal shares. Parts differ in size and have at least one sample; ids must have n samples or more. The result is a
// pure function of the arguments; the caller owns it.
//
// The samples of a label are dealt one after another by Pólya's urn: the next one goes to part i with probability
// (alpha + c_i)/(n*alpha + c), where c_i of the c samples before went to i. The counts then have the distribution of
// multinomial draws with Dirichlet proportions, without a power or a logarithm, which differ between platforms.
func Dirichlet(ids []int32, label func(id int32) int32, n int, alpha float64, key noise.Key) [][]int32 {
	parts, dealt := make([][]int32, n), map[int32][]int{} // dealt: the part of each sample before, by label
	uniform := float64(float64(n) * alpha)                // the conversion prevents a fused operation
	for t, id := range ids {
		before := dealt[label(id)]
		total := uniform + float64(len(before))
		i := key.Below(3*t, n)
		if float64(key.Uint32(3*t+1))*total >= uniform*(1<<32) {
			i = before[key.Below(3*t+2, len(before))]
		}
		dealt[label(id)] = append(before, i)
		parts[i] = append(parts[i], id)
	}
	for i := range parts {
		if len(parts[i]) > 0 {
			continue
		}
		largest := 0
		for j := range parts {
			if len(parts[j]) > len(parts[largest]) {
				largest = j
			}
		}
		last := len(parts[largest]) - 1
		parts[i], parts[largest] = parts[largest][last:], parts[largest][:last:last]
	}
	return parts
}
