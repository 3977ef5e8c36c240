package noise_test

import (
	"fmt"

	"brood/models/noise"
)

// A key addresses random numbers: the same key gives the same numbers wherever and whenever they are drawn.
func ExampleKey() {
	key := noise.Key{Seed: 1, Purpose: noise.Pair, Round: 7, Member: 3}
	fmt.Println(key.Below(0, 100), key.Below(1, 100), key.Uniform(2))
	again := noise.Key{Seed: 1, Purpose: noise.Pair, Round: 7, Member: 3}
	fmt.Println(again.Below(1, 100), key.Permute(0, 5), key.Permute(1, 5), key.Permute(2, 5), key.Permute(3, 5),
		key.Permute(4, 5))
	// Output:
	// 80 7 0.12283671
	// 7 2 3 1 4 0
}
