package kernel

//go:generate go run ./gen -dir .
