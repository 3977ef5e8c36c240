//go:build race

package remote

// raced reports that the race detector is on: then garbage is collected later, and frames wait longer to be read.
const raced = true
