package data

import (
	"fmt"
	"strings"
	"testing"
)

// prices returns a table of n lines whose last column is offset plus a small number.
func prices(n int, offset string) []byte {
	text := []byte("size,price\n")
	for i := range n {
		text = fmt.Appendf(text, "%d,%s%d\n", i*7%13, offset, i*5%8)
	}
	return text
}

// TestTargetsFarFromZero: targets so far from zero that float32 cannot distinguish them are refused; others are read.
func TestTargetsFarFromZero(t *testing.T) {
	for offset, wantErr := range map[string]string{
		"":              "",
		"100":           "",
		"100000000":     "subtract a constant near their mean",
		"1000000000000": "subtract a constant near their mean",
	} {
		_, err := Reading{Outputs: 1}.Load(put(t,
			map[string][]byte{"train.csv": prices(60, offset), "test.csv": prices(9, offset)}))
		if (err == nil) != (wantErr == "") || err != nil && !strings.Contains(err.Error(), wantErr) {
			t.Errorf("offset %s: %v, want %q", offset, err, wantErr)
		}
	}
	same := []byte("size,price\n" + strings.Repeat("1,0\n2,0\n", 30))
	if _, err := (Reading{Outputs: 1}).Load(put(t, map[string][]byte{"train.csv": same, "test.csv": same})); err == nil ||
		!strings.Contains(err.Error(), "nothing to learn") {
		t.Errorf("targets that are all 0: %v", err)
	}
}

// TestTargetsCount: the memory of a set includes its targets, and constant targets have variance 0 despite rounding.
func TestTargetsCount(t *testing.T) {
	alike := []byte("size,price\n" + strings.Repeat("1,0.1\n2,0.1\n", 5))
	s, err := Reading{Outputs: 1}.Load(put(t, map[string][]byte{"train.csv": prices(60, ""), "test.csv": alike}))
	if err != nil {
		t.Fatal(err)
	}
	if want := int64(4*70 + 4*70); s.Bytes() != want {
		t.Errorf("70 samples of a number, with a target each, take %d bytes, want %d", s.Bytes(), want)
	}
	if v := s.TargetVariance(s.Test(), 0); v != 0 {
		t.Errorf("targets that are all alike have the variance %v", v)
	}
	if v := s.TargetVariance(s.Train(), 0); !(v > 0.9 && v < 1.1) {
		t.Errorf("standardised targets have the variance %v", v)
	}
}
