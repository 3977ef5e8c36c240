// Package cuda drives NVIDIA devices through their driver, which it loads at run time, without cgo or a toolkit. It
// runs the kernels of models/gpu as PTX, which clang compiles from the same source that OpenCL uses:
//
//	go generate ./models/gpu/cuda    # needs clang-19
//
// The PTX is committed and contains the digest of its source, so that neither can change without the other.
package cuda

//go:generate go test -run TestPTX . -update
