// Package nvml asks NVIDIA's management library how a card is: what of its memory is taken, how busy and how warm it
// is. It only reads, and nothing needs it: where the library is missing, or a question is none that it answers for a
// card, that figure is not known. Drivers that know where their devices lie on the PCI bus take it.
package nvml

// Reading is what the library tells of a card now; below zero where it does not.
type Reading struct {
	Taken, Total int64   // bytes of the card's memory, taken by whomever, and altogether
	Load         float64 // share of the last moment in which some kernel ran, 0 to 1
	Celsius      float64
}

// unknown is of a card that the library does not know.
var unknown = Reading{-1, -1, -1, -1}
