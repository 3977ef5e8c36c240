//go:build !amd64 && !arm64

package kernel

func available(t Twin) bool { return t == Portable }

func table(Twin) isa { return isa{} }
