//go:build !amd64

package kernel

// ports are not counted here.
var ports map[Twin]map[string][Ops]float64
