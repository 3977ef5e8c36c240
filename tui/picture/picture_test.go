package picture

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image"
	"image/color"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/image/font/gofont/gomono"
	"golang.org/x/image/font/sfnt"

	"brood/tui/cell"
)

func pixels(t *testing.T, g *cell.Grid) image.Image {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, g, "png", true); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&out)
	if err != nil {
		t.Fatal(err)
	}
	if b := img.Bounds(); b.Dx() != g.W*cellW*pngScale || b.Dy() != g.H*cellH*pngScale {
		t.Fatalf("%v for %d x %d cells", b, g.W, g.H)
	}
	return img
}

// inked reports whether the pixel at x, y, in shares of cell 0 0, differs from the background.
func inked(img image.Image, x, y float64) bool {
	ground := color.NRGBAModel.Convert(img.At(img.Bounds().Dx()-1, img.Bounds().Dy()-1))
	return color.NRGBAModel.Convert(img.At(int(x*cellW*pngScale), int(y*cellH*pngScale))) != ground
}

func TestBrailleDots(t *testing.T) {
	for bit, at := range [][2]float64{{.25, .125}, {.25, .375}, {.25, .625}, {.75, .125}, {.75, .375}, {.75, .625},
		{.25, .875}, {.75, .875}} {
		g := cell.New(2, 1)
		g.Set(0, 0, rune(0x2800|1<<bit), cell.Centre)
		img := pixels(t, g)
		for _, x := range []float64{.25, .75} {
			for _, y := range []float64{.125, .375, .625, .875} {
				if want := at == [2]float64{x, y}; inked(img, x, y) != want {
					t.Errorf("bit %d: the dot at %v %v is drawn: %v", bit, x, y, !want)
				}
			}
		}
	}
}

func TestBlocks(t *testing.T) {
	for i, r := range []rune("▁▂▃▄▅▆▇█") {
		g := cell.New(2, 1)
		g.Set(0, 0, r, cell.Centre)
		img, top := pixels(t, g), 1-float64(i+1)/8
		if !inked(img, .5, top+.06) || top > 0 && inked(img, .5, top-.06) {
			t.Errorf("%c does not end at %v", r, top)
		}
	}
	for i, r := range []rune("▏▎▍▌▋▊▉") {
		g := cell.New(2, 1)
		g.Set(0, 0, r, cell.Centre)
		img, right := pixels(t, g), float64(i+1)/8
		if !inked(img, right-.06, .5) || inked(img, right+.06, .5) {
			t.Errorf("%c does not end at %v", r, right)
		}
	}
}

// TestEveryCharacter draws each character of the golden screens: as a shape, or as a letter that the font has.
func TestEveryCharacter(t *testing.T) {
	font, err := sfnt.Parse(gomono.TTF)
	if err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob("../testdata/*/*")
	more, _ := filepath.Glob("../testdata/*.*")
	seen := map[rune]bool{}
	for _, f := range append(files, more...) {
		text, err := os.ReadFile(f)
		if err != nil {
			continue // a directory
		}
		for _, r := range string(text) {
			if r < 0x80 || seen[r] {
				continue
			}
			seen[r] = true
			glyph, err := font.GlyphIndex(nil, r)
			if err != nil {
				t.Fatal(err)
			}
			if !shape(&svg{}, r, 0, 0, color.Black) && glyph == 0 {
				t.Errorf("%q (%U) of %s is neither a shape nor a letter of the font", r, r, filepath.Base(f))
			}
		}
	}
	if len(seen) < 50 {
		t.Errorf("the golden screens have %d characters beyond ASCII", len(seen))
	}
}

func TestSVG(t *testing.T) {
	g := cell.New(40, 4)
	g.Box(g.Rect(), cell.Focus, "loss", "log y")
	g.Text(2, 1, 30, cell.Plain, `a<b & "c"`)
	g.Text(2, 2, 30, cell.Chosen, "chosen")
	g.Set(20, 1, '⣿', cell.Centre)
	var out bytes.Buffer
	if err := Write(&out, g, "svg", false); err != nil {
		t.Fatal(err)
	}
	var texts, names []string
	for d := xml.NewDecoder(bytes.NewReader(out.Bytes())); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, &out)
		}
		switch x := token.(type) {
		case xml.StartElement:
			names = append(names, x.Name.Local)
		case xml.CharData:
			if s := strings.TrimSpace(string(x)); s != "" {
				texts = append(texts, s)
			}
		}
	}
	for _, want := range []string{"loss", "log", "y", "a<b", "&", `"c"`, "chosen"} {
		if !slices.Contains(texts, want) {
			t.Errorf("%q is not in %q", want, texts)
		}
	}
	if names[0] != "svg" || !slices.Contains(names, "path") {
		t.Errorf("elements %v", names)
	}
	palette := cell.Palette(false)
	if s := out.String(); strings.Count(s, hex(palette[cell.Chosen].Back)) == 0 ||
		strings.Count(s, hex(palette[cell.Centre].Fore)) == 0 {
		t.Errorf("colours of the theme are missing:\n%s", s)
	}
}

// TestWideCharacters: a wide character takes its two cells, and text after it begins in its own cell.
func TestWideCharacters(t *testing.T) {
	g := cell.New(10, 1)
	g.Text(1, 0, 9, cell.Plain, "a日本b")
	var out bytes.Buffer
	if err := Write(&out, g, "svg", true); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{`x="9" y="13.5" textLength="9"`, `x="18" y="13.5" textLength="18"`,
		`x="36" y="13.5" textLength="18"`, `x="54" y="13.5" textLength="9"`} {
		if letter := []rune("a日本b")[i]; !strings.Contains(out.String(), want) {
			t.Errorf("%c has no %s in\n%s", letter, want, &out)
		}
	}
}

// TestShapesStayInTheImage draws each shape in a picture of one cell, beyond which some reach.
func TestShapesStayInTheImage(t *testing.T) {
	for _, r := range "→←↑↓◇◆□╭╮╰╯━▶▲▼✓✗‖" {
		g := cell.New(1, 1)
		g.Set(0, 0, r, cell.Centre)
		var out bytes.Buffer
		if err := Write(&out, g, "png", true); err != nil {
			t.Errorf("%c: %v", r, err)
		}
	}
}
