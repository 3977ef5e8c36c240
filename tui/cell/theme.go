package cell

import (
	"image/color"
	"strings"

	"charm.land/lipgloss/v2"
)

// Role is the meaning of a cell; a theme maps it to a style. No information is in the role alone, since terminals may
// have no colours.
type Role uint8

const (
	Plain Role = iota
	Faint
	Border
	Title
	Focus // border of the panel that has the keys
	FocusTitle
	Strong
	Centre    // the centre, and measured bytes
	Member    // the focused member
	Band      // range of the population
	Median    // median of the population
	Raw       // measured values behind a smoothed curve
	Predicted // value of a formula
	Staged    // a knob change that was not sent
	Marks     // edits on the axis
	Good
	Warn
	Alert // needs attention
	Chosen
	Key
	replica                       // the first of Replicas roles
	gradient = replica + Replicas // the first of gradientSteps roles
	roles    = gradient + gradientSteps
)

// Replicas is the number of roles for the curves of single members.
const Replicas = 8

// Replica returns the role of the curve of member i, modulo Replicas.
func Replica(i int) Role { return replica + Role(i%Replicas) }

const gradientSteps = 8

// Gradient returns the role of a share from 0 to 1 of a scale. Its colours are those of the map viridis, whose
// lightness rises with the share on a dark background and falls on a light one, as that of the shades from ░ to █.
func Gradient(share float64) Role {
	return gradient + Role(min(max(share, 0)*gradientSteps, gradientSteps-1))
}

// Theme maps roles to escape sequences. The zero Theme writes none.
type Theme struct {
	on    [roles]string
	ascii bool
}

// Plainly returns the theme without colours.
func Plainly(ascii bool) Theme { return Theme{ascii: ascii} }

// Look is how a role is drawn.
type Look struct {
	Fore, Back color.Color // nil: as the background asks for
	Bold       bool
}

// Palette returns the looks of all roles, by role, for a dark or a light background: one accent, a hue for each role,
// red for what needs a user.
func Palette(dark bool) []Look {
	pick := lipgloss.LightDark(dark)
	c := func(light, night string) color.Color { return pick(lipgloss.Color(light), lipgloss.Color(night)) }
	accent, green, amber := c("#0b6fd3", "#6cb6ff"), c("#117a4b", "#5fd7a0"), c("#9a6700", "#f0c674")
	out := []Look{
		Plain:      {},
		Faint:      {Fore: c("#6c6f85", "#8a8fa3")},
		Border:     {Fore: c("#bcc0cc", "#4a5066")},
		Title:      {Fore: c("#3c4058", "#c6cbe0"), Bold: true},
		Focus:      {Fore: accent},
		FocusTitle: {Fore: accent, Bold: true},
		Strong:     {Bold: true},
		Centre:     {Fore: green},
		Member:     {Fore: c("#b35900", "#ffb454")},
		Band:       {Fore: c("#a9b8cf", "#4f6387")},
		Median:     {Fore: c("#3d5a99", "#9db7f5")},
		Raw:        {Fore: c("#b3b7c6", "#666b7f")},
		Predicted:  {Fore: c("#7a4fb0", "#b894f0")},
		Staged:     {Fore: amber, Bold: true},
		Marks:      {Fore: c("#8a6d00", "#d7ba5f")},
		Good:       {Fore: green},
		Warn:       {Fore: amber},
		Alert:      {Fore: c("#c4193a", "#ff6b81"), Bold: true},
		Chosen:     {Fore: c("#ffffff", "#10131c"), Back: accent},
		Key:        {Fore: accent},
	}
	for _, hex := range replicaColours {
		out = append(out, Look{Fore: c(hex[0], hex[1])})
	}
	for _, hex := range gradientColours {
		out = append(out, Look{Fore: c(hex[0], hex[1])})
	}
	return out
}

// replicaColours are the colours of [Replica] on a light and on a dark background.
var replicaColours = [Replicas][2]string{
	{"#b5452c", "#f28e6b"}, {"#1f6fc9", "#6cb6ff"}, {"#8f7400", "#e6c84f"}, {"#7a4fb0", "#c99bff"},
	{"#0e7f8a", "#4fd0d9"}, {"#b0307f", "#f58bc0"}, {"#5f7318", "#b5c26a"}, {"#7f5a36", "#c9a27e"},
}

// gradientColours are the colours of [Gradient], the lowest first: viridis from 0.89 down to 0.05 on a light
// background, and from 0.2 to 1 on a dark one.
var gradientColours = [gradientSteps][2]string{
	{"#b2dd2d", "#414487"}, {"#6ccd5a", "#34618d"}, {"#37b578", "#287c8e"}, {"#1f9a8a", "#1f9a8a"},
	{"#287c8e", "#37b578"}, {"#34618d", "#6ccd5a"}, {"#414487", "#b2dd2d"}, {"#471365", "#fde725"},
}

// Coloured returns the theme of Palette.
func Coloured(dark, ascii bool) Theme {
	t := Theme{ascii: ascii}
	for i, look := range Palette(dark) {
		s := lipgloss.NewStyle().Bold(look.Bold)
		if look.Fore != nil {
			s = s.Foreground(look.Fore)
		}
		if look.Back != nil {
			s = s.Background(look.Back)
		}
		t.on[i], _, _ = strings.Cut(s.Render("x"), "x")
	}
	return t
}

// WithoutGradient returns the theme with one colour for all steps of [Gradient], for terminals that have too few
// colours for it. The shades show the value.
func (t Theme) WithoutGradient() Theme {
	for i := gradient; i < roles; i++ {
		t.on[i] = t.on[Median]
	}
	return t
}

const off = "\x1b[m"

// String renders the grid as H lines, including trailing blanks, which overwrite the previous frame.
func (t Theme) String(g *Grid) string {
	var b strings.Builder
	b.Grow(len(g.Cells) * 3)
	for y := range g.H {
		if y > 0 {
			b.WriteByte('\n')
		}
		on := ""
		for _, c := range g.Cells[y*g.W : (y+1)*g.W] {
			if want := t.on[c.Role]; want != on && c.R != 0 {
				if on != "" {
					b.WriteString(off)
				}
				b.WriteString(want)
				on = want
			}
			switch {
			case c.R == 0 && t.ascii:
				b.WriteByte('?')
			case c.R == 0:
			case t.ascii && c.R >= 0x80:
				b.WriteByte(asciiFor(c.R))
			default:
				b.WriteRune(c.R)
			}
		}
		if on != "" {
			b.WriteString(off)
		}
	}
	return b.String()
}

// asciiGlyphs lists characters, each text behind the ASCII character that replaces them. Charts draw ASCII themselves
// instead of Braille.
var asciiGlyphs = []string{
	"-─╌–—━▃▄", "|│┤├┆▏▕▌▐", "+╭╮╰╯┬┴┼▒✓", ">→▸▶›»", "<←◂‹«", ".·∙…", "*●◆■◉", "o○◇□", "x×✗", "!≠",
	"=‖▅▆", "~±≈", "_▁▂", ":░", "%▓", "#▇█", "^↑▲", "v↓▼",
}

// asciiFor returns the ASCII replacement of a character.
func asciiFor(r rune) byte {
	for _, g := range asciiGlyphs {
		if strings.ContainsRune(g[1:], r) {
			return g[0]
		}
	}
	return '?'
}
