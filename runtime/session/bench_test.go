package session

import (
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"brood/runtime/event"
)

// bulk returns points that do not compress much, like measured ones.
func bulk(n int) []event.Record {
	rng := rand.New(rand.NewPCG(5, 6))
	out := make([]event.Record, n)
	for i := range out {
		out[i] = points(uint64(i), 32)
		for k := range out[i].Points.Values {
			out[i].Points.Values[k] = rng.Float64()
		}
	}
	return out
}

func BenchmarkWrite(b *testing.B) {
	o := defaults()
	s, err := create(filepath.Join(b.TempDir(), "s"), o)
	if err != nil {
		b.Fatal(err)
	}
	batch := bulk(640)
	bytes := 0
	for _, r := range batch {
		data, _, _ := s.log.code.record(r)
		bytes += len(data)
	}
	b.SetBytes(int64(bytes))
	for b.Loop() {
		if err := s.Append(batch...); err != nil {
			b.Fatal(err)
		}
	}
	s.Close()
}

func BenchmarkAppendEssential(b *testing.B) {
	s, err := Create(filepath.Join(b.TempDir(), "s"))
	if err != nil {
		b.Fatal(err)
	}
	var each []time.Duration
	r := commit(1)
	for b.Loop() {
		t := time.Now()
		if err := s.Append(r); err != nil {
			b.Fatal(err)
		}
		each = append(each, time.Since(t))
	}
	report(b, each)
	s.Close()
}

func report(b *testing.B, each []time.Duration) {
	slices.Sort(each)
	b.ReportMetric(float64(each[len(each)/2].Nanoseconds())/1e3, "p50-us")
	b.ReportMetric(float64(each[len(each)*99/100].Nanoseconds())/1e3, "p99-us")
}

// large returns the directory of a log of about 200 MB, in segments of 64 MiB.
func large(b *testing.B) (dir string) {
	dir = filepath.Join(b.TempDir(), "s")
	o := defaults()
	o.segment = 64 << 20
	s, err := create(dir, o)
	if err != nil {
		b.Fatal(err)
	}
	batch := bulk(640)
	for i := 0; Size(dir) < 200_000_000; i++ {
		if err := s.Append(batch...); err != nil {
			b.Fatal(err)
		}
		if i%50 == 0 {
			if err := s.AppendKeyframe(make([]byte, 10_000)); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	return dir
}

func BenchmarkLarge(b *testing.B) {
	dir := large(b)
	b.Run("seek", func(b *testing.B) {
		r, err := OpenReader(dir)
		if err != nil {
			b.Fatal(err)
		}
		defer r.Close()
		n := r.Records()
		rng := rand.New(rand.NewPCG(1, 1))
		var each []time.Duration
		for b.Loop() {
			t := time.Now()
			if err := r.Seek(rng.Uint64N(n)); err != nil {
				b.Fatal(err)
			}
			if _, err := r.Next(); err != nil {
				b.Fatal(err)
			}
			each = append(each, time.Since(t))
		}
		report(b, each)
	})
	b.Run("keyframe", func(b *testing.B) {
		r, err := OpenReader(dir)
		if err != nil {
			b.Fatal(err)
		}
		defer r.Close()
		n := r.Records()
		rng := rand.New(rand.NewPCG(1, 1))
		for b.Loop() {
			if _, _, _, err := r.Keyframe(rng.Uint64N(n)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		b.SetBytes(Size(dir))
		for b.Loop() {
			if _, err := read(b, dir); err != io.EOF {
				b.Fatal(err)
			}
		}
	})
	for _, name := range []string{"reopen", "reopen without index", "describe"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if name == "reopen without index" {
					for i := uint32(1); os.Remove(filepath.Join(dir, indexName(i))) == nil; i++ {
					}
				}
				if name == "describe" {
					if x := Describe(dir); x.Err != "" {
						b.Fatal(x.Err)
					}
					continue
				}
				s, err := Open(dir)
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				s.Close()
				b.StartTimer()
			}
		})
	}
}
