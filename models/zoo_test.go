package models

import "testing"

// TestZooCounts compares parameter counts with the sources (Parle's research code, DarwiNN, EGGROLL, Caffe) and with
// manual counts.
func TestZooCounts(t *testing.T) {
	for name, want := range map[string][2]int{
		"mlp": {235146, 0}, "mlp-gelu": {235146 + 2*(256+128), 0}, "mlp-small": {50890, 0}, "cifar-small": {12026, 0}, "softmax": {7850, 0},
		"lenet": {132220, 2 * (20 + 50 + 500)}, "lenets": {5946, 2 * (8 + 16 + 32)},
		"lenet-caffe": {431080, 0}, "allcnn": {1667166, 2 * (3*96 + 5*192 + 10)}, "allcnns": {47486, 2 * (3*16 + 5*32 + 10)},
		"darwinn-10k": {11274, 0}, "darwinn-30k": {28938, 0}, "darwinn-500k": {454922, 0}, "darwinn-3m": {3274634, 0}, "eggroll": {118016, 0}, "eggroll-gelu": {118016, 0}, "eggroll-shallow": {101632, 0},
		"wrn-28-10": {36479194, 2 * (16 + 8*(160+320+640))}, "resnet20": {269722, 2 * (7*16 + 6*32 + 6*64)}, "resnet18": {11173962, 2 * (5*64 + 5*(128+256+512))},
		"cif-300k": {360421, 2 * (2*64 + 3*(128+256) + 512)}, "cif-900k": {895973, 2 * (2*64 + 3*(128+256+512))}, "cif-8m": {7790794, 2 * (2*64 + 3*(128+256+512))},
		"quadratic": {784, 0}, "bytes-attention": {512 + 128*32 + 3*64 + 2*(96*32+96+32*32+32) + 32*64 + 64 + 64*32 + 32 + 128*32 + 128, 0}, "bytes-mingru": {128*16 + 2*(64*16+64) + 2*(64*64+64) + 128*64 + 128, 0}, "bytes-int8": {128*8 + 64*64 + 64 + 128*64 + 128, 0}, "mlp-int8": {784*64 + 64 + 64*10 + 10, 0}, "bytes-small": {128*8 + 64*64 + 64 + 128*64 + 128, 0},
		"cifar-94": {1972480, 2304}, "gpt-small": {64*64 + 128*64 + 2*(4*64+3*64*64+3*64+64*64+64+2*64*256+256+64) + 2*64 + 64*128 + 128, 0},
	} {
		m, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		if m.Layout.Params != want[0] || m.Layout.Stats != want[1] {
			t.Errorf("%s: %d parameters and %d statistics, want %v", name, m.Layout.Params, m.Layout.Stats, want)
		}
		if m.Name != name || m.Doc == "" {
			t.Errorf("%s calls itself %q (%q)", name, m.Name, m.Doc)
		}
	}
	if len(List()) != 31 {
		t.Errorf("models %v: add the new one to this test", List())
	}
}

// TestFlops counts LeNet's (Caffe) products by hand: convolutions of 24x24 and 8x8, then two dense layers.
func TestFlops(t *testing.T) {
	m, err := Load("lenet-caffe")
	if err != nil {
		t.Fatal(err)
	}
	conv1, rest := 2.*24*24*20*25, 2.*(8*8*50*20*25+800*500+500*10)
	if f, g := m.Flops(); f != conv1+rest || g != 2*conv1+3*rest {
		t.Errorf("%v forward and %v in a gradient, want %v and %v", f, g, conv1+rest, 2*conv1+3*rest)
	}
}
