package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"brood/optim/catalog"
	"brood/runtime/session"
	"brood/tui"
	"brood/tui/panel"
	"brood/tui/picture"
)

// pictureOptions select the screen that brood export draws as SVG or PNG.
type pictureOptions struct {
	screen, size string
	light        bool
}

// pictureFlags lists the flags that only pictures have.
var pictureFlags = []string{"screen", "size", "light"}

func (p *pictureOptions) register(f *pflag.FlagSet) {
	f.StringVar(&p.screen, "screen", "", "pictures: screen to draw, such as population (default: live)")
	f.StringVar(&p.size, "size", "120x36", "pictures: columns and rows of the screen")
	f.BoolVar(&p.light, "light", false, "pictures: draw on a light background")
}

// picture reports whether the format is one of pictures.
func (x *exporting) picture() bool { return slices.Contains(picture.Forms(), x.to) }

// checkPicture rejects the flags of pictures for other formats.
func (x *exporting) checkPicture(c *cobra.Command) error {
	for _, name := range pictureFlags {
		if c.Flags().Changed(name) && !x.picture() {
			return usage("--%s applies to pictures: give their format, such as --to svg", name)
		}
	}
	return nil
}

// pictures writes a picture of one screen of a session, after round x.at, or after its last round.
func (x *exporting) pictures(ctx context.Context, s streams, args []string) error {
	sessions, err := sessionsOf(args)
	if err != nil {
		return err
	}
	if len(sessions) > 1 {
		return usage("--to %s draws one session: %d are given", x.to, len(sessions))
	}
	opt := panel.Options{Light: x.pictured.light, At: x.at}
	if opt.Screen, err = tui.FindScreen(cmp.Or(x.pictured.screen, "live")); err != nil {
		return err
	}
	if opt.Width, opt.Height, err = parseSize(x.pictured.size); err != nil {
		return err
	}
	dir := sessions[0].path
	if opt.At, err = roundOf(dir, opt.At); err != nil {
		return err
	}
	r, err := session.OpenReader(dir)
	if err != nil {
		return err
	}
	defer r.Close()
	opt.Source, opt.Session, opt.Algorithms = recorded(dir, r).Source, dir, catalog.All()
	file := x.file
	if file == "" {
		file = filepath.Base(dir) + "." + x.to
	}
	write := func(w io.Writer) error { return tui.Picture(ctx, opt, x.to, w) }
	if err := writeFile(file, x.force, write); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%s: screen %s of %s, %s\n", oneLine(file), opt.Screen, filepath.Base(dir), x.pictured.size)
	return nil
}
