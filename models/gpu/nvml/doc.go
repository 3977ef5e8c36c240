// Package nvml reads the state of a card from NVIDIA's management library: memory in use, load and temperature. It is
// optional: without the library, or if the library does not support a query for a card, the value is unknown. Drivers
// that know the PCI bus addresses of their devices use it.
package nvml

// Reading is a card's state as the library reports it; unknown values are below zero.
type Reading struct {
	Taken, Total int64   // bytes of the card's memory in use by all processes, and in total
	Load         float64 // share of the last sampling period in which a kernel ran, 0 to 1
	Celsius      float64
}

// unknown is the Reading of a card that the library does not know.
var unknown = Reading{-1, -1, -1, -1}
