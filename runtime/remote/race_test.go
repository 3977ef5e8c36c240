//go:build race

package remote

// raced says that the race detector looks on: garbage is collected late then, and frames wait longer to be read.
const raced = true
