// Package ptxtest interprets the PTX of the kernels without a card, for tests. Work items run one after another, from
// barrier to barrier. It reports faults that a card may not: out-of-bounds or unaligned accesses, shared memory that
// one work item writes while another uses it between two barriers, and a barrier that not all work items reach.
//
// It supports the instructions that clang generates from OpenCL C, and refuses all others by name.
package ptxtest
