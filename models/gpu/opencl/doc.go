// Package opencl drives devices by the system's OpenCL library, which it loads when it is asked for devices: no cgo, no
// toolkit, nothing at build time. It takes OpenCL 1.2, which NVIDIA, AMD, Intel and Apple have, and PoCL on a
// processor.
package opencl
