package tui

import (
	"fmt"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"brood/models/usererr"
	"brood/optim"
	"brood/tui/cell"
	"brood/tui/panel"
)

// prompt is the state of the command line.
type prompt struct {
	panel.TextInput
	err string // why the line was rejected; its text stays for editing
}

// edit handles a key. After an error, typing starts a new line, while other keys edit the present one.
func (p *prompt) edit(name, text string) {
	if p.err != "" && text != "" && text != " " { // a space continues the line
		p.SetText("")
	}
	p.err = ""
	p.Key(name, text)
}

// openPrompt opens the command line.
func (m *model) openPrompt() tea.Cmd {
	m.prompt = &prompt{}
	return m.loadValues()
}

// Run executes a command line.
func (m *model) Run(text string) tea.Cmd {
	cmd, err := m.execute(text)
	if err != nil {
		m.Say(cell.Alert, err.Error())
	}
	return cmd
}

func (m *model) execute(text string) (tea.Cmd, error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return nil, nil
	}
	if pc, ok := strings.CutSuffix(words[0], "%"); ok {
		words = []string{"goto", pc + "%"}
	} else if _, err := strconv.ParseUint(words[0], 10, 63); err == nil {
		words = []string{"goto", words[0]}
	}
	c, err := m.command(words[0])
	if err != nil {
		return nil, err
	}
	if c.Why != nil {
		if why := c.Why(m.Host); why != "" {
			return nil, fmt.Errorf("%s: %s", c.Name, why)
		}
	}
	if c.Args != "" && !c.Optional && len(words) < 1+len(strings.Fields(c.Args)) {
		return nil, fmt.Errorf("%s: write %s %s", c.Name, c.Name, c.Args)
	}
	return c.Do(m.Host, words[1:])
}

// command returns the command with a name, or the only one whose name starts with it.
func (m *model) command(name string) (found panel.Command, err error) {
	var all, matching []string
	for _, c := range m.commands() {
		if c.Name == name {
			return c, nil
		}
		if all = append(all, c.Name); strings.HasPrefix(c.Name, name) {
			found, matching = c, append(matching, c.Name)
		}
	}
	switch len(matching) {
	case 0:
		return found, fmt.Errorf("there is no command %q%s: press tab to see them", name, usererr.Suggest(name, all))
	case 1:
		return found, nil
	}
	return found, fmt.Errorf("%q could be %s: type more letters", name, strings.Join(matching, ", "))
}

func (m *model) promptKey(name, text string) tea.Cmd {
	p := m.prompt
	switch name {
	case "esc":
		m.prompt = nil
	case "enter":
		cmd, err := m.execute(p.Text())
		if err != nil {
			p.err = err.Error()
			return nil
		}
		m.prompt = nil
		return cmd
	case "tab":
		p.err = ""
		p.Complete(candidates(m, p.Text()), 1, " ")
	case "shift+tab":
		p.err = ""
		p.Complete(candidates(m, p.Text()), -1, " ")
	case "backspace":
		if len(p.Runes) == 0 {
			m.prompt = nil
			return nil
		}
		p.edit(name, text)
	default:
		p.edit(name, text)
	}
	return nil
}

// candidates returns the completions of the last word.
func candidates(m *model, text string) (out []string) {
	words := strings.Fields(text)
	if len(words) == 0 || strings.HasSuffix(text, " ") {
		words = append(words, "")
	}
	last := words[len(words)-1]
	var all []string
	if len(words) == 1 {
		for _, c := range m.commands() {
			all = append(all, c.Name)
		}
	} else if c, err := m.command(words[0]); err == nil {
		all = c.Completions(m.Host, words[1:])
	}
	for _, w := range all {
		if strings.HasPrefix(w, last) {
			out = append(out, w)
		}
	}
	return out
}

// drawPrompt draws the line and, to its right, the completions or the error. An error that does not fit is drawn in the
// line above.
func (m *model) drawPrompt(g *cell.Grid, y int) {
	p := m.prompt
	x := g.Text(1, y, 2, cell.Key, ":")
	from := min(max(0, p.Cursor-max(1, g.W-6)), len(p.Runes))
	role := cell.Plain
	if p.err != "" {
		role = cell.Faint
	}
	end := g.Text(x, y, g.W-4, role, string(p.Runes[from:]))
	at := x + p.Cursor - from
	c := g.At(at, y)
	g.Set(at, y, c.R, cell.Chosen)
	if m.Opt.NoColor && c.R == ' ' {
		g.Set(at, y, '_', cell.Chosen)
	}
	switch room := g.W - end - 4; {
	case p.err != "" && cell.Width(p.err) > room:
		g.Clear(cell.Rect{X: 0, Y: y - 1, W: g.W, H: 1})
		g.Text(1, y-1, g.W-2, cell.Alert, p.err)
	case p.err != "":
		g.Text(end+2, y, room, cell.Alert, p.err)
	case p.Cycle != nil:
		p.drawCycle(g, end+2, y, room)
	case p.Cursor == len(p.Runes):
		g.Text(end+2, y, room, cell.Faint, strings.Join(candidates(m, p.Text()), "  "))
	}
	if k, value, ok := m.promptKnob(); ok && p.err == "" {
		h := min(y, m.rail.PreviewLines(m.Host, k, value))
		above := cell.Rect{X: 0, Y: y - h, W: g.W, H: h}
		g.Clear(above)
		m.rail.DrawPreview(m.Host, g, cell.Rect{X: 1, Y: above.Y, W: g.W - 2, H: above.H}, k, value)
	}
}

// promptKnob returns the knob that the last word of a command `set` changes, and the value typed so far; ok is false if
// there is none.
func (m *model) promptKnob() (k optim.Knob, value string, ok bool) {
	words := strings.Fields(m.prompt.Text())
	if len(words) < 2 || m.Knobs == nil {
		return k, "", false
	}
	if c, err := m.command(words[0]); err != nil || c.Name != "set" {
		return k, "", false
	}
	name, value, ok := strings.Cut(words[len(words)-1], "=")
	if !ok && len(words) == 3 {
		name, value, ok = words[1], words[2], true
	}
	if bare := strings.TrimRight(name, "+-"); bare != name { // eta+=0.1
		name, value = bare, name[len(bare):]+"="+value
	}
	k, known := m.Alg.Knob(name)
	return k, value, ok && known && value != ""
}

// drawCycle draws the completions, starting with the chosen one, which is highlighted.
func (p *prompt) drawCycle(g *cell.Grid, x, y, room int) {
	end := x + room
	for i := range p.Cycle {
		at := (p.CycleAt + i) % len(p.Cycle)
		word, role := p.Cycle[at][strings.LastIndex(p.Cycle[at], " ")+1:], cell.Faint
		if i == 0 {
			role = cell.Chosen
		}
		if x+cell.Width(word) > end {
			g.Text(x, y, end-x, cell.Faint, "…")
			return
		}
		x = g.Text(x, y, end-x, role, word) + 2
	}
}
