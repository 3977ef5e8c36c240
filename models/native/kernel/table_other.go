//go:build !amd64 && !arm64

package kernel

func available(t Variant) bool { return t == Portable }

func table(Variant) isa { return isa{} }
