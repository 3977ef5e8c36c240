// Package cuda reaches NVIDIA's devices by their driver, which is loaded at run time, without cgo and without a
// toolkit. It runs the kernels of models/gpu as PTX, which clang made of the very text that OpenCL compiles:
//
//	go generate ./models/gpu/cuda    # needs clang-19
//
// The PTX is committed and names the digest of the text that it was made of, so that one cannot change without the
// other.
package cuda

//go:generate go test -run TestPTX . -update
