// Package kernel computes the inner loops of the native engine: matrix products, convolutions, pooling, softmax, linear
// statements, Adam and Gaussian noise. It is a leaf: of brood it imports only models/noise.
//
// Every kernel exists four times. The variants avx512, avx2 and neon are assembly that gen writes, for amd64 with avo
// (go generate; text and generators are in the tree and tests compare them); portable is Go and runs on every other
// machine. The variant amx equals avx512 except for products of bytes and of bfloat16, which use tiles.
//
//	t, err := kernel.Choose("")            // the best variant of this CPU; FromEnv reads $BROOD_CPU
//	k, err := kernel.New(t)                // one for each goroutine: it owns scratch memory
//	ep := kernel.Epilogue{Bias: b, ReLU: true}
//	k.Gemm(kernel.NT, batch, out, in, x, in, w, in, y, out, &ep) // y = max(0, x*w^T + b)
//
// # Overview
//
//	Gemm                                  products with an epilogue: bias, ReLU, its gradient, accumulation, descent
//	Lin Add Axpy Scale ColSum             statements over vectors
//	Adam NaturalStep                      steps of optimisers
//	Relu Gate Mul Lookup                  element by element: rectifiers and their gradient, masks, tables of bytes
//	LeakyRelu Tanh Silu Gelu              activations, and with Back behind the name their gradients
//	CrossEntropy                          softmax, loss and gradient of rows of logits
//	Normals Perturb NoiseSum              noise of a Field: the bits of models/noise
//	Integers IntegerBytes IntegerSum      the same for Integer noise
//	RoundedBytes                          Integer noise, scaled and rounded
//	GemmBF16                              products of operands that are rounded to bfloat16
//	GemmBytes SumBytes                    exact products of bytes, as floats and as int32
//	Settle SettleWide PowerSums           values, logits and losses from the sums of whole-number models
//	RowDots Transpose                     products with one column; transposition
//	Drop Cross                            masks of dropout; elements of two vectors by coins
//	ToBlock FromBlock                     sample-major matrices to and from blocks
//	NewConv ConvForward ConvData ConvWeights ConvBias
//	NewPool MaxPool MaxPoolBack MeanPool MeanPoolBack
//	NormSums NormSquares NormApply NormBackSums NormBack     batch normalisation of a block
//	LayerSum LayerSquares LayerApply LayerBackSums LayerBack LayerScale      layer normalisation of a row
//
// # Memory
//
// Matrices are row-major float32; ld is the distance in elements between the starts of two rows. Slices are borrowed
// for the call. A slice that is too short is a bug of the caller and panics before memory is touched. No call allocates
// once the scratch memory of its Kernels has grown to the shapes in use; create Conv and Pool once, in a plan.
//
// # Blocks
//
// Convolution and pooling take blocks of Lanes samples, the sample innermost: [channel][Plane(h, w)][Lanes], pixels in
// rows. Lanes without a sample are zero, so a batch need not be a multiple of Lanes: where the gradient of a result is
// zero it adds nothing to the weights. A layer with a bias makes such lanes of its result non-zero, which is harmless
// as long as their gradient stays zero. Plane exceeds the number of pixels by one row if that number is even; the row
// is not read.
//
// # Bits
//
// An element depends on its own inputs only: not on the tile or batch that it was computed with, nor its position, nor
// the alignment of the memory. A row computed alone equals the same row among others, bit for bit. (ConvWeights and
// ConvBias sum over a whole block, whose lanes they add in a fixed order.)
//
// All variants write the same bits on every architecture: they implement the arithmetic f32/1 (docs/arithmetic.md),
// which specifies the order of sums and the rounding of each operation. Gemm, RowDots, ConvForward, ConvData and
// ConvWeights fuse multiply and add; all others round every product before it is added. Two NaN count as equal here;
// their payload bits are unspecified.
package kernel
