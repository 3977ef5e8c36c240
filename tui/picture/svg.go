package picture

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"image/color"
	"io"
	"strconv"
	"strings"
)

// svg collects shapes by colour: a path for each colour is a tenth of an element for each shape. What is drawn is the
// same in any order, since shapes of different colours do not overlap but for the ground and the backgrounds of text.
type svg struct {
	w, h   int
	ground []string
	order  []string // colours in the order of their first use
	paths  map[string]*strings.Builder
	lines  []string
	texts  []string
}

func (s *svg) rect(x, y, w, h float64, c color.Color) {
	if h >= cellH && w >= cellW { // a background
		s.ground = append(s.ground, fmt.Sprintf(`<rect x="%s" y="%s" width="%s" height="%s"%s/>`,
			number(x), number(y), number(w), number(h), fill(c)))
		return
	}
	fmt.Fprintf(s.path(c), "M%s %sh%sv%sh-%sz", number(x), number(y), number(w), number(h), number(w))
}

func (s *svg) polygon(points []point, c color.Color) {
	p := s.path(c)
	for i, at := range points {
		p.WriteByte("ML"[min(i, 1)])
		p.WriteString(number(at.x) + " " + number(at.y))
	}
	p.WriteByte('z')
}

func (s *svg) stroke(points []point, width float64, c color.Color) {
	var b strings.Builder
	for i, at := range points {
		b.WriteByte("ML"[min(i, 1)])
		b.WriteString(number(at.x) + " " + number(at.y))
	}
	s.lines = append(s.lines, fmt.Sprintf(`<path d="%s" fill="none" stroke="%s" stroke-width="%s"/>`, &b, hex(c),
		number(width)))
}

func (s *svg) text(x, y int, text string, cells int, bold bool, c color.Color) {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder does not fail
	weight := ""
	if bold {
		weight = ` font-weight="bold"`
	}
	s.texts = append(s.texts, fmt.Sprintf(`<text x="%d" y="%s" textLength="%d"%s%s>%s</text>`, x*cellW,
		number(float64(y*cellH)+baseline), len([]rune(text))*cells*cellW, fill(c), weight, &b))
}

func (s *svg) path(c color.Color) *strings.Builder {
	key := fill(c)
	if s.paths == nil {
		s.paths = map[string]*strings.Builder{}
	}
	if s.paths[key] == nil {
		s.paths[key] = &strings.Builder{}
		s.order = append(s.order, key)
	}
	return s.paths[key]
}

func (s *svg) end(out io.Writer) error {
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d">`+"\n", s.w, s.h,
		s.w, s.h)
	for _, l := range s.ground {
		fmt.Fprintln(w, l)
	}
	for _, c := range s.order {
		fmt.Fprintf(w, `<path%s d="%s"/>`+"\n", c, s.paths[c])
	}
	for _, l := range s.lines {
		fmt.Fprintln(w, l)
	}
	fmt.Fprintf(w, `<g font-family="ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="%s">`+"\n",
		number(fontSize))
	for _, l := range s.texts {
		fmt.Fprintln(w, l)
	}
	fmt.Fprint(w, "</g>\n</svg>\n")
	return w.Flush()
}

// number formats a coordinate to a hundredth of a unit.
func number(x float64) string {
	return strconv.FormatFloat(float64(int(x*100+.5))/100, 'f', -1, 64)
}

func hex(c color.Color) string {
	n := color.NRGBAModel.Convert(c).(color.NRGBA)
	return fmt.Sprintf("#%02x%02x%02x", n.R, n.G, n.B)
}

// fill returns the attributes of a filled shape.
func fill(c color.Color) string {
	n := color.NRGBAModel.Convert(c).(color.NRGBA)
	if n.A < 255 {
		return fmt.Sprintf(` fill="%s" fill-opacity="%.2g"`, hex(c), float64(n.A)/255)
	}
	return fmt.Sprintf(` fill="%s"`, hex(c))
}
