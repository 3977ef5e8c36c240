package view

import (
	"fmt"
	"slices"

	"brood/models/engine"

	"github.com/fxamacker/cbor/v2"
)

// wireSeries is the encoded form of a series. It contains only the buckets of the lowest level; decoding rebuilds the
// others.
type wireSeries struct {
	Name    string          `cbor:"0,keyasint"`
	Level   uint            `cbor:"1,keyasint"`
	All     wireTrack       `cbor:"2,keyasint"`
	Median  wireTrack       `cbor:"3,keyasint"`
	Members []engine.Member `cbor:"4,keyasint"`
	Tracks  []wireTrack     `cbor:"5,keyasint"`
	End     uint64          `cbor:"6,keyasint"`
	Every   uint64          `cbor:"7,keyasint,omitempty"`
	Swaps   uint            `cbor:"8,keyasint,omitempty"`
	Gaps    []Gap           `cbor:"9,keyasint,omitempty"`
	Small   bool            `cbor:"10,keyasint,omitempty"`
}

type wireTrack struct {
	_       struct{} `cbor:",toarray"`
	Some    bool
	Origin  uint64
	Sealed  uint64
	Last    float64
	Buckets []byte // the sealed buckets and the open one
}

// MarshalCBOR implements cbor.Marshaler.
func (s Series) MarshalCBOR() ([]byte, error) {
	w := wireSeries{
		Name:    s.Name,
		Level:   s.level,
		All:     s.all.wire(),
		Median:  s.median.wire(),
		Members: s.Members,
		End:     s.end,
		Every:   s.every,
		Swaps:   s.swaps,
		Gaps:    s.gaps,
		Small:   s.small,
	}
	for i := range s.tracks {
		w.Tracks = append(w.Tracks, s.tracks[i].wire())
	}
	return cbor.Marshal(w)
}

// UnmarshalCBOR implements cbor.Unmarshaler. Its input is untrusted; it returns an error if it is inconsistent.
func (s *Series) UnmarshalCBOR(p []byte) (err error) {
	var w wireSeries
	if err = cbor.Unmarshal(p, &w); err != nil {
		return err
	}
	if len(w.Tracks) != len(w.Members) || w.Level > 63 || !slices.IsSorted(w.Members) {
		return fmt.Errorf("series %q: %d members but %d tracks at level %d: the snapshot is damaged, attach again",
			w.Name, len(w.Members), len(w.Tracks), w.Level)
	}
	*s = Series{
		Name:    w.Name,
		Members: w.Members,
		level:   w.Level,
		end:     w.End,
		every:   w.Every,
		swaps:   w.Swaps,
		gaps:    w.Gaps,
		small:   w.Small,
		tracks:  make([]track, len(w.Tracks)),
	}
	if s.all, err = w.All.track(); err != nil {
		return err
	}
	if s.median, err = w.Median.track(); err != nil {
		return err
	}
	for i, t := range w.Tracks {
		if s.tracks[i], err = t.track(); err != nil {
			return err
		}
		if !s.contains(&s.tracks[i]) {
			return errShort
		}
	}
	if !s.contains(&s.median) {
		return errShort
	}
	return nil
}

// contains reports whether a track is within the range of the track over all members, on which add relies.
func (s *Series) contains(t *track) bool {
	return !t.some || s.all.some && t.origin >= s.all.origin && t.at <= s.all.at
}

func (t *track) wire() wireTrack {
	w := wireTrack{Some: t.some, Origin: t.origin, Sealed: t.at - t.origin, Last: t.last}
	for _, b := range t.base() {
		w.Buckets = b.appendTo(w.Buckets)
	}
	if t.some {
		w.Buckets = t.open.appendTo(w.Buckets)
	}
	return w
}

func (w wireTrack) track() (t track, err error) {
	if !w.Some {
		return t, nil
	}
	if w.Sealed > 2*maxBuckets || w.Origin > 1<<62 {
		return t, errShort
	}
	t = track{some: true, origin: w.Origin, at: w.Origin, last: w.Last}
	p := w.Buckets
	for range w.Sealed {
		if t.open, p, err = readBucket(p); err != nil {
			return t, err
		}
		t.seal()
	}
	t.open, _, err = readBucket(p)
	return t, err
}
