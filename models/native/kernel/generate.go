package kernel

//go:generate go run ./gen -dir .
//go:generate go run ./gen/neon -dir .
