package cuda

import (
	"crypto/sha256"
	"embed"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strings"

	"brood/models/gpu"
)

//go:embed *.ptx builtins.cl
var texts embed.FS

// digest returns the digest of a kernel source and the builtins before it, which the first line of its PTX contains.
func digest(source string) (string, error) {
	own, err := texts.ReadFile("builtins.cl")
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(append(own, source...))
	return hex.EncodeToString(sum[:]), nil
}

// PTX returns the PTX compiled from source, the text that [gpu.Source] returns for name. It fails if the source has
// changed since.
func PTX(name, source string) (string, error) {
	p, err := texts.ReadFile(name + ".ptx")
	if err != nil {
		return "", fmt.Errorf("there is no PTX of %s", name)
	}
	first, _, _ := strings.Cut(string(p), "\n")
	sum, err := digest(source)
	if err != nil {
		return "", err
	}
	if first != "// "+sum {
		return "", fmt.Errorf("the PTX of %s was made of another text: run go generate ./models/gpu/cuda with clang-19", name)
	}
	return string(p), nil
}

// Parameters encodes launch arguments as a PTX kernel reads them, each aligned to its size, and returns their offsets.
func Parameters(args []any) (p []byte, at []int, err error) {
	p = make([]byte, 0, 8*len(args))
	for i, a := range args {
		size := 4
		switch a.(type) {
		case gpu.Memory, uint64:
			size = 8
		}
		for len(p)%size != 0 {
			p = append(p, 0)
		}
		at = append(at, len(p))
		switch a := a.(type) {
		case gpu.Memory:
			p = binary.LittleEndian.AppendUint64(p, uint64(a))
		case uint64:
			p = binary.LittleEndian.AppendUint64(p, a)
		case uint32:
			p = binary.LittleEndian.AppendUint32(p, a)
		case float32:
			p = binary.LittleEndian.AppendUint32(p, math.Float32bits(a))
		default:
			return nil, nil, fmt.Errorf("argument %d is a %T", i, a)
		}
	}
	return p, at, nil
}
