package kernel

import "golang.org/x/sys/cpu"

func available(t Variant) bool {
	switch t {
	case AMX:
		return available(AVX512) && cpu.X86.HasAVX512VNNI && cpu.X86.HasAVX512BF16 && cpu.X86.HasAMXTile &&
			cpu.X86.HasAMXInt8 && cpu.X86.HasAMXBF16 && grantAMX()
	case AVX512:
		return cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL
	case AVX2:
		return cpu.X86.HasAVX2 && cpu.X86.HasFMA
	}
	return t == Portable
}

func table(t Variant) isa {
	switch t {
	case AMX:
		t := table(AVX512)
		t.amxBytes = &[2][2]func(*amxArgs){{amxBytes1x1AVX512, amxBytes1x2AVX512}, {amxBytes2x1AVX512, amxBytes2x2AVX512}}
		t.amxPairs = &[2][2]func(*amxArgs){{amxPairs1x1AVX512, amxPairs1x2AVX512}, {amxPairs2x1AVX512, amxPairs2x2AVX512}}
		t.amxConv, t.join16 = []func(*amxConvArgs){amxConv1AVX512, amxConv2AVX512}, join16AVX512
		t.issue[Dot], t.bytesDot = issueDotAMX, amxRows*amxRows*amxBytes
		return t
	case AVX512:
		t := avx512()
		if cpu.X86.HasAVX512VNNI { // otherwise with floats and the same bits
			t.bytes, t.bytesWidth, t.bytesDot = bytesAVX512(), 32, 64
		}
		if cpu.X86.HasAVX512VBMI {
			t.lookupBytes = lookupBytesAVX512
		}
		if cpu.X86.HasAVX512BF16 {
			t.round16 = round16AVX512
		}
		// On Intel CPUs, which have tiles, a product of pairs takes as long as four multiply-adds.
		if cpu.X86.HasAVX512BF16 && !cpu.X86.HasAMXTile {
			t.pairs, t.pairsNarrow = pairsAVX512(32), pairsAVX512(16)
		}
		return t
	case AVX2:
		t := avx2()
		if cpu.X86.HasAVXVNNI {
			t.bytes = []func(*tileArgs){nil, dots1x16AVX2, dots2x16AVX2, dots3x16AVX2, dots4x16AVX2, dots5x16AVX2, dots6x16AVX2}
			t.widen, t.widenSigned, t.bytesDot, t.issue[Dot] = nil, nil, 32, issueDotsAVX2
		}
		return t
	}
	return isa{}
}

func avx512() isa {
	return isa{
		vector: 16, height: 14, width: 32, reads: 16, issueTurn: 96, chain: chain, ports: ports[AVX512],
		tiles: []func(*tileArgs){nil, tile1x32AVX512, tile2x32AVX512, tile3x32AVX512, tile4x32AVX512, tile5x32AVX512,
			tile6x32AVX512, tile7x32AVX512, tile8x32AVX512, tile9x32AVX512, tile10x32AVX512,
			tile11x32AVX512, tile12x32AVX512, tile13x32AVX512, tile14x32AVX512},
		narrow: []func(*tileArgs){nil, tile1x16AVX512, tile2x16AVX512, tile3x16AVX512, tile4x16AVX512, tile5x16AVX512,
			tile6x16AVX512, tile7x16AVX512, tile8x16AVX512, tile9x16AVX512, tile10x16AVX512,
			tile11x16AVX512, tile12x16AVX512, tile13x16AVX512, tile14x16AVX512},
		lin: [4]func(*vecArgs){nil, lin1AVX512, lin2AVX512, lin3AVX512},
		conv: []func(*convArgs){nil, conv1AVX512, conv2AVX512, conv3AVX512, conv4AVX512, conv5AVX512, conv6AVX512,
			conv7AVX512, conv8AVX512, conv9AVX512, conv10AVX512, conv11AVX512, conv12AVX512, conv13AVX512, conv14AVX512},
		dots: [][]func(*dotArgs){
			1: {nil, dot1x1AVX512, dot2x1AVX512, dot3x1AVX512, dot4x1AVX512, dot5x1AVX512,
				dot6x1AVX512, dot7x1AVX512, dot8x1AVX512},
			3: {nil, dot1x3AVX512, dot2x3AVX512, dot3x3AVX512, dot4x3AVX512, dot5x3AVX512,
				dot6x3AVX512, dot7x3AVX512, dot8x3AVX512},
			5: {nil, dot1x5AVX512, dot2x5AVX512, dot3x5AVX512, dot4x5AVX512, dot5x5AVX512},
		},
		transpose:   transposeAVX512,
		copyPanel:   copyPanelAVX512,
		copyRows:    copyRowsAVX512,
		adam:        adamAVX512,
		natural:     naturalAVX512,
		colSum:      colSumAVX512,
		squares:     squaresAVX512,
		softmax:     softmaxAVX512,
		noiseFill:   noiseFillAVX512,
		noiseSum:    noiseSumAVX512,
		noiseSquare: noiseSquareAVX512,
		noiseFloats: noiseFloatsAVX512, noiseBytes: noiseBytesAVX512, noiseWhole: noiseWholeAVX512,
		noiseRounded: noiseRoundedAVX512,
		maxPool:      maxPoolAVX512,
		maxPoolBack:  maxPoolBackAVX512,
		maxPoolSet:   maxPoolSetAVX512,
		convRow:      convRowAVX512,
		meanPool:     meanPoolAVX512,
		meanPoolBack: meanPoolBackAVX512,
		read:         readAVX512,
		issue: [Ops]func(int){MultiplyAdd: issueMultiplyAddAVX512, Multiply: issueMultiplyAVX512, Shift: issueShiftAVX512,
			Root: issueRootAVX512, Dot: issueDotAVX512, Logic: issueLogicAVX512, Load: issueLoadAVX512},
		roundFloats: roundFloatsAVX512,
		relu:        reluAVX512, gate: gateAVX512, mul: mulAVX512, drop: dropAVX512, words: wordsAVX512, pick: pickAVX512,
		lookup: lookupAVX512,
		leaky:  leakyAVX512, leakyBack: leakyBackAVX512, tanh: tanhAVX512, tanhBack: tanhBackAVX512,
		silu: siluAVX512, siluBack: siluBackAVX512, gelu: geluAVX512, geluBack: geluBackAVX512,
		settle: settleAVX512, settleWide: settleWideAVX512, powerSums: powerSumsAVX512,
		normSums: normSumsAVX512, normSquares: normSquaresAVX512, normApply: normApplyAVX512,
		normBackSums: normBackSumsAVX512, normBack: normBackAVX512,
		layerSum: layerSumAVX512, layerSquares: layerSquaresAVX512, layerApply: layerApplyAVX512,
		layerBackSums: layerBackSumsAVX512, layerBack: layerBackAVX512, layerScale: layerScaleAVX512,
	}
}

func avx2() isa {
	return isa{
		vector: 8, height: 6, width: 16, near: true, issueTurn: 48, chain: chain, ports: ports[AVX2],
		tiles: []func(*tileArgs){nil, tile1x16AVX2, tile2x16AVX2, tile3x16AVX2, tile4x16AVX2, tile5x16AVX2,
			tile6x16AVX2},
		masked: []func(*tileArgs){nil, tile1x16MaskedAVX2, tile2x16MaskedAVX2, tile3x16MaskedAVX2, tile4x16MaskedAVX2,
			tile5x16MaskedAVX2, tile6x16MaskedAVX2},
		lin:  [4]func(*vecArgs){nil, lin1AVX2, lin2AVX2, lin3AVX2},
		conv: []func(*convArgs){nil, conv1AVX2, conv2AVX2, conv3AVX2, conv4AVX2, conv5AVX2, conv6AVX2},
		dots: [][]func(*dotArgs){
			1: {nil, dot1x1AVX2, dot2x1AVX2, dot3x1AVX2, dot4x1AVX2},
			2: {nil, dot1x2AVX2, dot2x2AVX2, dot3x2AVX2, dot4x2AVX2, dot5x2AVX2, dot6x2AVX2},
			3: {nil, dot1x3AVX2, dot2x3AVX2, dot3x3AVX2, dot4x3AVX2},
		},
		transpose:   transposeAVX2,
		copyPanel:   copyPanelAVX2,
		copyRows:    copyRowsAVX2,
		adam:        adamAVX2,
		natural:     naturalAVX2,
		colSum:      colSumAVX2,
		squares:     squaresAVX2,
		softmax:     softmaxAVX2,
		noiseFill:   noiseFillAVX2,
		noiseSum:    noiseSumAVX2,
		noiseSquare: noiseSquareAVX2,
		noiseFloats: noiseFloatsAVX2, noiseBytes: noiseBytesAVX2, noiseWhole: noiseWholeAVX2, noiseRounded: noiseRoundedAVX2,
		maxPool:      maxPoolAVX2,
		maxPoolBack:  maxPoolBackAVX2,
		maxPoolSet:   maxPoolSetAVX2,
		convRow:      convRowAVX2,
		meanPool:     meanPoolAVX2,
		meanPoolBack: meanPoolBackAVX2,
		read:         readAVX2,
		issue: [Ops]func(int){MultiplyAdd: issueMultiplyAddAVX2, Multiply: issueMultiplyAVX2, Shift: issueShiftAVX2,
			Root: issueRootAVX2, Dot: issueDotAVX2, Logic: issueLogicAVX2, Load: issueLoadAVX2},
		roundFloats: roundFloatsAVX2,
		relu:        reluAVX2, gate: gateAVX2, mul: mulAVX2, drop: dropAVX2, words: wordsAVX2, pick: pickAVX2,
		leaky: leakyAVX2, leakyBack: leakyBackAVX2, tanh: tanhAVX2, tanhBack: tanhBackAVX2,
		silu: siluAVX2, siluBack: siluBackAVX2, gelu: geluAVX2, geluBack: geluBackAVX2,
		bytes: []func(*tileArgs){nil, bytes1x16AVX2, bytes2x16AVX2, bytes3x16AVX2, bytes4x16AVX2, bytes5x16AVX2,
			bytes6x16AVX2},
		bytesWhole: true, bytesWidth: 16, bytesDot: 16, widen: widenAVX2, widenSigned: widenSignedAVX2,
		settle: settleAVX2, settleWide: settleWideAVX2,
		normSums: normSumsAVX2, normSquares: normSquaresAVX2, normApply: normApplyAVX2, normBackSums: normBackSumsAVX2,
		normBack: normBackAVX2,
		layerSum: layerSumAVX2, layerSquares: layerSquaresAVX2, layerApply: layerApplyAVX2,
		layerBackSums: layerBackSumsAVX2, layerBack: layerBackAVX2, layerScale: layerScaleAVX2,
	}
}

func bytesAVX512() []func(*tileArgs) {
	return []func(*tileArgs){nil, bytes1x32AVX512, bytes2x32AVX512, bytes3x32AVX512, bytes4x32AVX512, bytes5x32AVX512,
		bytes6x32AVX512, bytes7x32AVX512, bytes8x32AVX512, bytes9x32AVX512, bytes10x32AVX512, bytes11x32AVX512,
		bytes12x32AVX512, bytes13x32AVX512, bytes14x32AVX512}
}

// pairsAVX512 returns the tiles of this many columns.
func pairsAVX512(columns int) []func(*tileArgs) {
	if columns == 16 {
		return []func(*tileArgs){nil, pairs1x16AVX512, pairs2x16AVX512, pairs3x16AVX512, pairs4x16AVX512, pairs5x16AVX512,
			pairs6x16AVX512, pairs7x16AVX512, pairs8x16AVX512, pairs9x16AVX512, pairs10x16AVX512, pairs11x16AVX512,
			pairs12x16AVX512, pairs13x16AVX512, pairs14x16AVX512}
	}
	return []func(*tileArgs){nil, pairs1x32AVX512, pairs2x32AVX512, pairs3x32AVX512, pairs4x32AVX512, pairs5x32AVX512,
		pairs6x32AVX512, pairs7x32AVX512, pairs8x32AVX512, pairs9x32AVX512, pairs10x32AVX512, pairs11x32AVX512,
		pairs12x32AVX512, pairs13x32AVX512, pairs14x32AVX512}
}
