// Command gen writes the assembly of package kernel, kernels_amd64.s and stubs_amd64.go, and counts its instructions in
// ports_amd64.go:
//
//	go generate ./models/native/kernel
//
// Every kernel is written once against gen, which hides the differences between AVX2 (16 registers of 8 lanes, mask
// vectors) and AVX-512 (32 registers of 16 lanes, mask registers). Registers are named, not allocated: the large tiles
// need all of them.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
)

// Names of the files written.
const asmFile, stubFile = "kernels_amd64.s", "stubs_amd64.go"

func main() {
	dir := flag.String("dir", ".", "where to write")
	flag.Parse()
	if err := write(*dir); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func write(dir string) error {
	files, err := generate()
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generate returns the text of the files by name.
func generate() (map[string][]byte, error) {
	ctx := build.NewContext()
	ctx.ConstraintExpr("amd64")
	consts, types := newConsts(ctx), map[string]string{}
	for _, g := range []*gen{newAVX2(ctx, consts, types), newAVX512(ctx, consts, types)} {
		g.gemm()
		g.transpose()
		g.copyPanel()
		g.copyRows()
		for terms := 1; terms <= 3; terms++ {
			g.lin(terms)
		}
		g.adam()
		g.natural()
		g.colSum()
		g.squares()
		g.pointwise()
		g.pick()
		g.activations()
		for m := 1; m <= len(g.r)/2-2; m++ {
			g.bytesTile("bytes", m)
			if !g.wide {
				g.bytesTile("dots", m)
			}
		}
		if g.wide {
			g.lookup()
			g.lookupBytes()
			g.round16()
			g.join16()
			g.powerSums()
		} else {
			g.issueDots()
			g.widen(false)
			g.widen(true)
		}
		g.roundFloats()
		g.settle(false)
		g.settle(true)
		g.norm()
		g.layerNorm()
		g.softmax()
		g.noiseFill()
		g.noiseSum(normal)
		g.noiseSum(square)
		g.noiseSum(whole)
		g.noiseIntegers(scaled)
		g.noiseIntegers(plain)
		g.noiseIntegers(rounded)
		g.drop()
		g.words()
		for m := 1; m <= len(g.r)/2-2; m++ {
			g.conv(m)
		}
		g.convRow()
		g.dots()
		g.pool()
		g.issue()
		g.issueLoad()
		g.read()
		if g.wide {
			g.chain()
			g.amx()
		}
	}
	f, err := ctx.Result()
	if err != nil {
		return nil, err
	}
	if err := pass.Compile.Execute(f); err != nil {
		return nil, err
	}
	cfg := printer.Config{Argv: []string{"go generate"}, Pkg: "kernel"}
	asm, err := printer.NewGoAsm(cfg).Print(f)
	if err != nil {
		return nil, err
	}
	stubs, err := printer.NewStubs(cfg).Print(f)
	if err != nil {
		return nil, err
	}
	for name, t := range types {
		stubs = bytes.Replace(stubs, []byte("func "+name+"(t *byte)"), []byte("func "+name+"(t *"+t+")"), 1)
	}
	counts, err := ports(f)
	return map[string][]byte{asmFile: asm, stubFile: stubs, portsFile: counts}, err
}
