package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"brood/optim/catalog"
	"brood/runtime/archive"
	"brood/runtime/session"
	"brood/tui"
	"brood/tui/panel"
	"brood/tui/picture"
	"brood/tui/textfmt"
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

// pictures writes a picture of one screen of a session, after round x.at, or after its last round; of the screen Runs
// with one or several sessions.
func (x *exporting) pictures(ctx context.Context, s streams, args []string) error {
	sessions, err := sessionsOf(args)
	if err != nil {
		return err
	}
	opt := panel.Options{Light: x.pictured.light, At: x.at}
	if opt.Screen, err = tui.FindScreen(cmp.Or(x.pictured.screen, "live")); err != nil {
		return err
	}
	if opt.Width, opt.Height, err = parseSize(x.pictured.size); err != nil {
		return err
	}
	if opt.Screen == runsScreen {
		return x.pictureRuns(ctx, s, opt, sessions)
	}
	if len(sessions) > 1 {
		return usage("--to %s draws one session: %d are given; --screen runs compares them", x.to, len(sessions))
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
	return x.writePicture(ctx, s, opt, filepath.Base(dir), filepath.Base(dir))
}

// runsScreen is the name of the screen that shows several sessions.
const runsScreen = "Runs"

// pictureRuns writes a picture of the screen Runs with these sessions alone, overlaid.
func (x *exporting) pictureRuns(ctx context.Context, s streams, opt panel.Options, sessions []compared) error {
	switch {
	case opt.At > 0:
		return usage("--at applies to the screens of one session: leave it out for --screen runs")
	case len(sessions) > tui.MaxRuns:
		return usage("--screen runs overlays up to %d sessions: %d are given", tui.MaxRuns, len(sessions))
	}
	home, err := session.Home()
	if err != nil {
		return err
	}
	opt.Library, opt.Algorithms = givenSessions{archive.OpenLibrary(home, archive.CacheDir()), sessions}, catalog.All()
	if len(sessions) == 1 {
		name := filepath.Base(sessions[0].path)
		return x.writePicture(ctx, s, opt, name, name)
	}
	return x.writePicture(ctx, s, opt, "sessions", textfmt.Count(len(sessions), "session"))
}

// writePicture draws the screen into x.file, or into name with the ending of the format. of names what it shows.
func (x *exporting) writePicture(ctx context.Context, s streams, opt panel.Options, name, of string) error {
	file := cmp.Or(x.file, name+"."+x.to)
	write := func(w io.Writer) error { return tui.Picture(ctx, opt, x.to, w) }
	if err := writeFile(file, x.force, write); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%s: screen %s of %s, %s\n", oneLine(file), opt.Screen, of, x.pictured.size)
	return nil
}

// givenSessions is a library of some sessions, which are only read.
type givenSessions struct {
	*archive.Library
	sessions []compared
}

// Scan implements panel.Library: it lists the sessions in the order in which they were given.
func (l givenSessions) Scan(context.Context, string) (out []archive.Entry, err error) {
	for _, x := range l.sessions {
		all, err := l.Library.Scan(filepath.Dir(x.path))
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(all, func(e archive.Entry) bool { return e.Dir == x.path })
		if at >= 0 {
			out = append(out, all[at])
		}
	}
	return out, nil
}

// Curves implements panel.Library.
func (l givenSessions) Curves(e archive.Entry) (*archive.Run, error) { return l.Run(e) }

var errPicture = errors.New("a picture changes no session")

// Open implements panel.Library.
func (givenSessions) Open(context.Context, string) (panel.Opened, error) {
	return panel.Opened{}, errPicture
}

// Delete implements panel.Library.
func (givenSessions) Delete(context.Context, string) error { return errPicture }
