// Package opencl drives devices through the system's OpenCL library, which it loads at run time, without cgo or a
// toolkit. It uses OpenCL 1.2, which NVIDIA, AMD, Intel and Apple support, and PoCL on a CPU.
package opencl
