package kernel

import "golang.org/x/sys/cpu"

// available: every arm64 CPU has NEON.
func available(t Variant) bool { return t == NEON || t == Portable }

func table(t Variant) isa {
	if t != NEON {
		return isa{}
	}
	n := neon()
	if cpu.ARM64.HasASIMDDP { // otherwise with floats and the same bits
		n.bytes = []func(*tileArgs){nil, bytes1x16NEON, bytes2x16NEON, bytes3x16NEON, bytes4x16NEON, bytes5x16NEON,
			bytes6x16NEON}
		n.byteStart, n.bytesWhole, n.bytesWidth, n.bytesDot = byteStartNEON, true, 16, 16
	}
	return n
}

// neon has no kernels for byte tables; they use the portable variant.
func neon() isa {
	return isa{
		vector: 4, height: 6, width: 16, whole: true, reads: 16, issueTurn: 24, chain: chain,
		tiles:  []func(*tileArgs){nil, tile1x16NEON, tile2x16NEON, tile3x16NEON, tile4x16NEON, tile5x16NEON, tile6x16NEON},
		narrow: []func(*tileArgs){nil, tile1x8NEON, tile2x8NEON, tile3x8NEON, tile4x8NEON, tile5x8NEON, tile6x8NEON},
		lin:    [4]func(*vecArgs){nil, lin1NEON, lin2NEON, lin3NEON},
		conv: []func(*convArgs){nil, conv1NEON, conv2NEON, conv3NEON, conv4NEON, conv5NEON, conv6NEON, conv7NEON, conv8NEON,
			conv9NEON, conv10NEON, conv11NEON, conv12NEON},
		dots: [][]func(*dotArgs){
			1: {nil, dot1x1NEON, dot2x1NEON, dot3x1NEON, dot4x1NEON, dot5x1NEON},
			3: {nil, dot1x3NEON, dot2x3NEON, dot3x3NEON, dot4x3NEON, dot5x3NEON},
			5: {nil, dot1x5NEON, dot2x5NEON, dot3x5NEON, dot4x5NEON, dot5x5NEON},
		},
		turn: turnNEON,
		adam: adamNEON, natural: naturalNEON, colSum: colSumNEON, squares: squaresNEON,
		relu: reluNEON, gate: gateNEON, mul: mulNEON, leaky: leakyNEON, leakyBack: leakyBackNEON,
		tanh: tanhNEON, tanhBack: tanhBackNEON, silu: siluNEON, siluBack: siluBackNEON, gelu: geluNEON,
		geluBack: geluBackNEON,
		settle:   settleNEON, settleWide: settleWideNEON,
		softmax:   softmaxNEON,
		noiseFill: noiseFillNEON, noiseSum: noiseSumNEON, noiseSquare: noiseSquareNEON,
		noiseFloats: noiseFloatsNEON, noiseBytes: noiseBytesNEON, noiseWhole: noiseWholeNEON, noiseRounded: noiseRoundedNEON,
		drop: dropNEON, words: wordsNEON, pick: pickNEON,
		layerSum: layerSumNEON, layerSquares: layerSquaresNEON, layerApply: layerApplyNEON,
		layerBackSums: layerBackSumsNEON, layerBack: layerBackNEON, layerScale: layerScaleNEON,
		maxPool: maxPoolNEON, maxPoolBack: maxPoolBackNEON, maxPoolSet: maxPoolSetNEON,
		meanPool: meanPoolNEON, meanPoolBack: meanPoolBackNEON,
		normSums: normSumsNEON, normSquares: normSquaresNEON, normApply: normApplyNEON, normBackSums: normBackSumsNEON,
		normBack: normBackNEON,
		issue:    [Ops]func(int){MultiplyAdd: issueMultiplyAddNEON, Dot: issueDotNEON},
	}
}
