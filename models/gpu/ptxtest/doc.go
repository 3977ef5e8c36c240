// Package ptxtest runs the PTX of the kernels without a card, for tests. Work items are interpreted one after another,
// a barrier at a time. What a card would not notice is a fault here: an access out of bounds or unaligned, shared
// memory that two work items touch between barriers of which one writes it, a barrier that not all reach.
//
// It knows the instructions that clang makes of OpenCL C, and refuses all others by name.
package ptxtest
