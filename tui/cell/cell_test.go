package cell

import (
	"image/color"
	"strings"
	"testing"
)

func lines(g *Grid) []string { return strings.Split(Plainly(false).String(g), "\n") }

func TestTextStaysInItsPlace(t *testing.T) {
	g := New(10, 3)
	g.Text(2, 1, 4, Plain, "abcdefgh")
	g.Text(-2, 0, 20, Plain, "outside on the left")
	g.Text(8, 2, 20, Plain, "outside")
	g.Text(0, 9, 20, Plain, "below")
	want := []string{"tside on t", "  abc…    ", "        ou"}
	for i, l := range lines(g) {
		if l != want[i] {
			t.Errorf("line %d is %q, want %q", i, l, want[i])
		}
	}
}

func TestWideAndControlCharacters(t *testing.T) {
	g := New(8, 1)
	if x := g.Text(0, 0, 8, Plain, "a\x1b[31m漢\tb\x00"); x != 8 {
		t.Errorf("ends at %d", x)
	}
	if l := lines(g)[0]; l != "a[31m漢b" || Width(l) != 8 {
		t.Errorf("%q takes %d cells", l, Width(l))
	}
	if s := Plainly(true).String(g); s != "a[31m??b" {
		t.Errorf("in ASCII it is %q", s)
	}
	for _, c := range [][2]string{{"one two three", "one two…"}, {"two three, or", "two three…"},
		{"a wordthatislong", "a wordtha…"}} {
		if got := Cut(c[0], 10); got != c[1] {
			t.Errorf("%q is cut to %q, want %q", c[0], got, c[1])
		}
	}
	if c := Cut("漢字", 3); c != "漢…" {
		t.Errorf("cut to %q", c)
	}
}

func TestRightAligned(t *testing.T) {
	g := New(8, 2)
	g.Right(6, 0, 5, Plain, "12")
	g.Right(6, 1, 3, Plain, "12345")
	if l := lines(g); l[0] != "    12  " || l[1] != "   12…  " {
		t.Errorf("%q", l)
	}
}

func TestBoxKeepsTitlesWithin(t *testing.T) {
	for w := range 30 {
		for h := range 5 {
			g := New(w, h)
			in := g.Box(g.Rect(), Focus, "a long title", "and a note")
			if in.W < 0 || in.H < 0 || in.W > w || in.H > h {
				t.Fatalf("inside of %dx%d is %+v", w, h, in)
			}
			for _, l := range lines(g) {
				if w > 0 && h > 0 && Width(l) != w {
					t.Fatalf("%q is not %d wide", l, w)
				}
			}
		}
	}
	g := New(30, 3)
	g.Box(g.Rect(), Border, "loss", "log y")
	if l := lines(g)[0]; l != "╭─ loss ──────────── log y ─╮" && !strings.HasPrefix(l, "╭─ loss ─") ||
		!strings.HasSuffix(l, " log y ─╮") {
		t.Errorf("%q", l)
	}
}

func TestBoxDropsPartsOfItsNote(t *testing.T) {
	for w, want := range map[int]string{40: " log y · ema 0.9 · round ", 28: " ema 0.9 · round ", 18: " round ",
		14: ""} {
		g := New(w, 3)
		g.Box(g.Rect(), Border, "loss", "log y · ema 0.9 · round")
		if l := lines(g)[0]; want == "" && strings.Contains(l, "round") || !strings.HasSuffix(l, want+"─╮") ||
			strings.Contains(strings.TrimSuffix(l, want+"─╮"), "·") {
			t.Errorf("at %d: %q", w, l)
		}
	}
}

func TestThemes(t *testing.T) {
	g := New(4, 1)
	g.Text(0, 0, 4, Alert, "a")
	g.Text(1, 0, 4, Alert, "b")
	g.Text(2, 0, 4, Plain, "c")
	if s := Plainly(false).String(g); s != "abc " {
		t.Errorf("plainly %q", s)
	}
	for _, dark := range []bool{true, false} {
		s := Coloured(dark, false).String(g)
		if strings.Count(s, "\x1b[") != 2 || !strings.Contains(s, "ab"+off+"c") {
			t.Errorf("dark %v: %q: want one colour for both letters, and its end", dark, s)
		}
	}
	if Coloured(true, false).String(g) == Coloured(false, false).String(g) {
		t.Error("light and dark backgrounds have one palette")
	}
	for r := rune(0x2500); r < 0x2600; r++ {
		if b := asciiFor(r); b < 0x20 || b > 0x7e {
			t.Errorf("%q folds to %q", r, b)
		}
	}
}

// TestGradient checks that each step is lighter than the one before on a dark background, darker on a light one, and
// that a terminal with few colours gets one colour for all.
func TestGradient(t *testing.T) {
	light := func(c color.Color) float64 {
		r, g, b, _ := c.RGBA()
		return 0.2126*float64(r) + 0.7152*float64(g) + 0.0722*float64(b)
	}
	for _, dark := range []bool{true, false} {
		all, few := Coloured(dark, false), Coloured(dark, false).WithoutGradient()
		palette := Palette(dark)
		if len(palette) != int(roles) {
			t.Fatalf("%d looks for %d roles", len(palette), roles)
		}
		for i := range gradientSteps - 1 {
			low, high := Gradient((float64(i)+0.5)/gradientSteps), Gradient((float64(i)+1.5)/gradientSteps)
			if low == high || (light(palette[high].Fore) > light(palette[low].Fore)) != dark {
				t.Errorf("dark %t: steps %d and %d are %v and %v", dark, i, i+1, palette[low], palette[high])
			}
			if all.on[low] == all.on[high] || few.on[low] != few.on[high] {
				t.Errorf("dark %t: step %d", dark, i)
			}
		}
	}
	if Gradient(-1) != Gradient(0) || Gradient(2) != Gradient(1) {
		t.Error("shares outside of the scale")
	}
}

// TestTitleIsNotCut: a title that is too long loses its second part whole.
func TestTitleIsNotCut(t *testing.T) {
	g := New(24, 3)
	g.Box(g.Rect(), Border, "ranking  distance to the goal", "lowest")
	if got := strings.Split(Plainly(false).String(g), "\n")[0]; got != "╭─ ranking ─── lowest ─╮" {
		t.Errorf("%q", got)
	}
}
