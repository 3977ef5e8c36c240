package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

var errStalled = errors.New("sent nothing for too long")

// try requests the missing bytes and stores what arrives.
func (c Client) try(ctx context.Context, d *download) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	clock := time.AfterFunc(c.Stall, func() { cancel(errStalled) })
	defer clock.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url, nil)
	if err != nil || req.URL.Scheme != "http" && req.URL.Scheme != "https" || req.URL.Host == "" {
		return permanent{errors.New("is no address of a web server; name one with --from URL, " +
			"such as --from https://example.org/mnist")}
	}
	req.Header.Set("Accept-Encoding", "identity") // the checksum is for the published, unencoded file
	if d.done > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", d.done))
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return reason(ctx, err)
	}
	defer resp.Body.Close()
	if err := d.accept(resp); err != nil {
		return err
	}
	buf := make([]byte, 1<<16)
	for {
		n, err := resp.Body.Read(buf)
		clock.Reset(c.Stall)
		if n > 0 {
			if err := d.take(buf[:n]); err != nil {
				return err
			}
			if c.Progress != nil {
				c.Progress(d.Name, d.done, d.Size)
			}
		}
		switch {
		case errors.Is(err, io.EOF) && d.done < d.Size:
			return errors.New("ended the answer early")
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return reason(ctx, err)
		}
	}
}

// accept checks the size that the server announces, and restarts the download if the server does not continue it.
func (d *download) accept(resp *http.Response) error {
	switch {
	case resp.StatusCode == http.StatusOK:
		if n := resp.ContentLength; n >= 0 && n != d.Size {
			return permanent{fmt.Errorf("serves %d bytes where the published file has %d; name another address with --from URL",
				n, d.Size)}
		}
		return d.restart()
	case resp.StatusCode == http.StatusPartialContent && d.done > 0:
		var from, to, size int64
		if n, _ := fmt.Sscanf(resp.Header.Get("Content-Range"), "bytes %d-%d/%d", &from, &to, &size); n < 2 ||
			from != d.done || n == 3 && size != d.Size {
			if err := d.restart(); err != nil {
				return err
			}
			return fmt.Errorf("answered with the range %q", resp.Header.Get("Content-Range"))
		}
		return nil
	case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable && d.done > 0:
		if err := d.restart(); err != nil {
			return err
		}
		return errors.New("refused to continue the file")
	case resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests:
		return fmt.Errorf("answered %s", resp.Status)
	}
	return permanent{fmt.Errorf("answered %s; name another address with --from URL", resp.Status)}
}

func (d *download) take(b []byte) error {
	if d.done+int64(len(b)) > d.Size {
		if err := d.restart(); err != nil {
			return err
		}
		return permanent{fmt.Errorf("sends more than the %d bytes of the published file; it was deleted; name another "+
			"address with --from URL", d.Size)}
	}
	n, err := d.out.Write(b)
	d.sum.Write(b[:n])
	d.done += int64(n)
	if err != nil {
		return permanent{fmt.Errorf("cannot be kept: %w", err)}
	}
	return nil
}

// reason returns an error that describes why the transfer ended.
func reason(ctx context.Context, err error) error {
	var lookup *net.DNSError
	var u *url.Error
	switch {
	case errors.Is(context.Cause(ctx), errStalled):
		return errStalled
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return errors.New("broke off the connection")
	case errors.As(err, &lookup):
		return fmt.Errorf("cannot be reached (%w)", lookup)
	case errors.As(err, &u):
		return fmt.Errorf("cannot be reached (%w)", u.Err)
	}
	return fmt.Errorf("broke off the connection (%w)", err)
}
