// Package fetch downloads published data sets into the user's cache. It verifies checksums, resumes interrupted
// downloads and renames complete files into place, so that an incomplete file is never read. It may import data.
//
//	set, err := fetch.Lookup("mnist")
//	err = fetch.Client{}.Get(ctx, set, set.URL, dir)
package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/lockedfile"
)

// Client downloads files. Zero fields have defaults.
type Client struct {
	HTTP  *http.Client  // default http.DefaultClient
	Stall time.Duration // a try fails if no byte arrives for this long; default 30 s
	// Consecutive tries without new bytes after which Get fails; default 3.
	Tries    int
	Pause    time.Duration                        // before the second try, doubled before the third; default 0
	Progress func(file string, done, total int64) // called as bytes arrive; may be nil
}

// permanent is an error for which another try is useless.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// Lock creates dir and waits until no other process downloads into it. The caller must call unlock.
func Lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return lockedfile.MutexAt(filepath.Join(dir, ".lock")).Lock()
}

// Get downloads the files of a set from a base address into dir and unpacks them if they are published as an archive.
// The caller holds the Lock of dir. It keeps existing valid files and resumes an incomplete one from its .part file.
func (c Client) Get(ctx context.Context, set Set, from, dir string) error {
	if c.HTTP == nil {
		c.HTTP = http.DefaultClient
	}
	if c.Stall == 0 {
		c.Stall = 30 * time.Second
	}
	if c.Tries == 0 {
		c.Tries = 3
	}
	for _, f := range set.Files {
		if err := c.file(ctx, strings.TrimSuffix(from, "/")+"/"+f.Name, filepath.Join(dir, f.Name), f); err != nil {
			return fmt.Errorf("data %s: %w", set.Name, err)
		}
	}
	if set.Folder == "" {
		return nil
	}
	if err := set.unpack(dir); err != nil {
		return fmt.Errorf("data %s: %w", set.Name, err)
	}
	return nil
}

// download is the state of a partly downloaded file.
type download struct {
	File
	url  string
	out  *os.File
	sum  hash.Hash
	done int64
}

func (d *download) restart() error {
	d.sum.Reset()
	d.done = 0
	if err := d.out.Truncate(0); err != nil {
		return permanent{err}
	}
	if _, err := d.out.Seek(0, io.SeekStart); err != nil {
		return permanent{err}
	}
	return nil
}

// file downloads one file to path.
func (c Client) file(ctx context.Context, url, path string, f File) error {
	if same, err := matches(path, f); err != nil || same {
		return err
	}
	part := path + ".part"
	out, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	d := &download{File: f, url: url, out: out, sum: sha256.New()}
	if d.done, err = io.Copy(d.sum, out); err != nil {
		return fmt.Errorf("%s: %w", part, err)
	}
	resumed := d.done > 0
	for {
		if err := c.complete(ctx, d); err != nil {
			return err
		}
		if hex.EncodeToString(d.sum.Sum(nil)) == d.SHA256 {
			break
		}
		got := d.sum.Sum(nil)
		if err := d.restart(); err != nil {
			return err
		}
		if !resumed {
			return fmt.Errorf("%s does not serve the published file: its SHA-256 is %x instead of %s; it was deleted; "+
				"name another address with --from URL", url, got, d.SHA256)
		}
		resumed = false // the part from an earlier download may have been wrong
	}
	if err := errors.Join(out.Sync(), out.Close()); err != nil {
		return fmt.Errorf("%s: %w", part, err)
	}
	return os.Rename(part, path)
}

// matches reports whether the file exists with the right size and checksum.
func matches(path string, f File) (bool, error) {
	in, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer in.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, in); err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	return hex.EncodeToString(sum.Sum(nil)) == f.SHA256, nil
}

// complete retries until all bytes have arrived, or Tries in a row brought none.
func (c Client) complete(ctx context.Context, d *download) error {
	for failed := 0; d.done < d.Size; {
		before := d.done
		err := c.try(ctx, d)
		var p permanent
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%s was interrupted (%w) after %d of %d bytes; run the command again to continue", d.url,
				ctx.Err(), d.done, d.Size)
		case errors.As(err, &p):
			return fmt.Errorf("%s %w", d.url, err)
		case d.done > before:
			failed = 0
			continue
		}
		if failed++; failed >= c.Tries {
			return fmt.Errorf("%s %w after %d of %d bytes; run the command again to continue, or name another address "+
				"with --from URL", d.url, err, d.done, d.Size)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(failed) * c.Pause):
		}
	}
	return nil
}
