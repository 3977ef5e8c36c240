package data

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
)

// TestGlyphsFrozen: the embedded fields and the set must never change: recorded sessions contain this digest.
func TestGlyphsFrozen(t *testing.T) {
	const fields = "abed00de87c5d74cd0013957de77ec9cd2bd11bba675dfa750e3d4abdf89afbf"
	if sum := sha256.Sum256(glyphFile); hex.EncodeToString(sum[:]) != fields {
		t.Errorf("glyphs.bin.gz has SHA-256 %x, recorded %s", sum, fields)
	}
	s, err := drawGlyphs(glyphInfo(), GlyphTrain, GlyphTest) // without the cache
	if err != nil {
		t.Fatal(err)
	}
	if s.Digest() != GlyphDigest {
		t.Errorf("digest %s, recorded %s", s.Digest(), GlyphDigest)
	}
	if len(s.Train())+len(s.Validation()) != GlyphTrain || len(s.Test()) != GlyphTest {
		t.Errorf("%d + %d + %d samples", len(s.Train()), len(s.Validation()), len(s.Test()))
	}
}

func TestGlyphsRefusesSizes(t *testing.T) {
	for _, n := range [][2]int{{0, 5}, {5, -1}, {1<<20 + 1, 0}} {
		if _, err := Glyphs(n[0], n[1]); err == nil {
			t.Errorf("%v: no error", n)
		}
	}
}

// TestGlyphsNormalised: the normalisation constants match the set.
func TestGlyphsNormalised(t *testing.T) {
	s, err := drawGlyphs(glyphInfo(), GlyphTrain, GlyphTest) // without the cache
	if err != nil {
		t.Fatal(err)
	}
	ids := s.Train()[:2000]
	x, y := make([]float32, len(ids)*s.Features()), make([]int32, len(ids))
	if err := s.Gather(ids, x, y); err != nil {
		t.Fatal(err)
	}
	var sum, sq float64
	for _, v := range x {
		sum, sq = sum+float64(v), sq+float64(v)*float64(v)
	}
	n := float64(len(x))
	if mean, variance := sum/n, sq/n-sum/n*sum/n; mean < -.05 || mean > .05 || variance < .9 || variance > 1.1 {
		t.Errorf("normalised mean %.3f and variance %.3f", mean, variance)
	}
}

// TestKeptGlyphs: the default set is drawn once; a cache with other contents is ignored.
func TestKeptGlyphs(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"XDG_CACHE_HOME", "HOME", "LocalAppData"} {
		t.Setenv(name, home)
	}
	drawn := func() *Set {
		t.Helper()
		s, err := Glyphs(GlyphTrain, GlyphTest)
		if err != nil {
			t.Fatal(err)
		}
		if s.Digest() != GlyphDigest || len(s.Test()) != GlyphTest {
			t.Fatalf("digest %s, %d test images", s.Digest(), len(s.Test()))
		}
		return s
	}
	first, path := drawn(), glyphCache()
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if s := cachedGlyphs(first.Info); s == nil || !bytes.Equal(s.Image(13999), first.Image(13999)) ||
		s.Label(13999) != first.Label(13999) {
		t.Error("what was drawn is not read again")
	}
	flipped := bytes.Clone(good)
	flipped[5_000_000] ^= 1
	for name, bad := range map[string][]byte{"flipped": flipped, "cut": good[:len(good)-1], "empty": nil,
		"a label of 200": append(bytes.Clone(good[:len(good)-1]), 200)} {
		if err := os.WriteFile(path, bad, 0o644); err != nil {
			t.Fatal(err)
		}
		if cachedGlyphs(first.Info) != nil {
			t.Errorf("%s: a cache that was changed is believed", name)
		}
	}
	drawn()
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, good) {
		t.Errorf("the cache was not rewritten: %v", err)
	}
	if err := os.WriteFile(filepath.Join(home, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"XDG_CACHE_HOME", "HOME", "LocalAppData"} {
		t.Setenv(name, filepath.Join(home, "file")) // where no folder can be created
	}
	drawn()
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*.tmp")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
