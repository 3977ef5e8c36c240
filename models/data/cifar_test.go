package data

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"maps"
	"math"
	"strings"
	"testing"
)

// tinyCIFAR returns a set of the catalogue with small files: n records each, with ascending labels and pixels derived
// from them.
func tinyCIFAR(t *testing.T, name string, n int) (Known, map[string][]byte) {
	k := known(t, name)
	last := len(k.Files) - 1
	k.Train, k.Test = n*last, n
	files := map[string][]byte{}
	for f, file := range k.Files {
		var b []byte
		for i := range n {
			l := byte((f*n + i) % k.Classes)
			if k.Classes == 100 {
				b = append(b, l/5)
			}
			b = append(append(b, l), bytes.Repeat([]byte{l, byte(f), byte(i)}, cifarPixels/3)...)
		}
		files[file] = b
	}
	return k, files
}

func tarred(files map[string][]byte, order ...string) []byte {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range order {
		w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name[strings.LastIndex(name, "/")+1:]]))})
		w.Write(files[name[strings.LastIndex(name, "/")+1:]])
	}
	w.Close()
	return out.Bytes()
}

// TestCIFARFromFiles: plain files, gzipped files, the folder of the archive and the archive in any order give the same
// set.
func TestCIFARFromFiles(t *testing.T) {
	for _, name := range []string{"cifar10", "cifar100"} {
		k, files := tinyCIFAR(t, name, 30)
		inside, zipped := map[string][]byte{}, map[string][]byte{}
		var order []string
		for f, b := range files {
			inside[k.Folder+"/"+f] = b
			zipped[f+".gz"] = gzipped(b)
			order = append(order, k.Folder+"/"+f)
		}
		archive := map[string][]byte{k.Archive: gzipped(tarred(files, append(order, "readme.html")...))}
		var digest string
		for what, dir := range map[string]string{"plain": put(t, files), "gzipped": put(t, zipped), "folder": put(t, inside),
			"archive": put(t, archive)} {
			s, err := k.read([]string{t.TempDir(), dir})
			if err != nil {
				t.Fatalf("%s, %s: %v", name, what, err)
			}
			if digest == "" {
				digest = s.Digest()
			}
			last := s.Len() - 1
			if s.Len() != 30*len(k.Files) || s.Label(int32(last)) != int32(last%k.Classes) || s.Image(31)[2] != 1 ||
				s.Image(31)[3071] != 1 || s.Digest() != digest {
				t.Errorf("%s, %s: %d samples, label %d, digest %s", name, what, s.Len(), s.Label(int32(last)), s.Digest())
			}
			if len(s.Test()) != 30 || len(s.Names) != k.Classes {
				t.Errorf("%s, %s: %d test samples, %d names", name, what, len(s.Test()), len(s.Names))
			}
		}
	}
}

func TestCIFARNamesFileAndOffset(t *testing.T) {
	k, good := tinyCIFAR(t, "cifar100", 4)
	change := func(file string, f func([]byte) []byte) string {
		files := map[string][]byte{}
		maps.Copy(files, good)
		files[file] = f(bytes.Clone(files[file]))
		return put(t, files)
	}
	archive := func(b []byte) string { return put(t, map[string][]byte{k.Archive: b}) }
	whole := gzipped(tarred(good, "a/train.bin", "a/test.bin"))
	damaged := bytes.Clone(whole)
	damaged[len(damaged)-6] ^= 1 // in the checksum
	for name, c := range map[string]struct {
		dir     string
		offset  int64
		wantErr string
	}{
		"short":    {change("train.bin", func(b []byte) []byte { return b[:len(b)-1] }), 4*3074 - 1, "within record 4 of 4"},
		"a record": {change("test.bin", func(b []byte) []byte { return b[3074:] }), 3 * 3074, "within record 4 of 4"},
		"empty":    {change("train.bin", func([]byte) []byte { return nil }), 0, "within record 1"},
		"long":     {change("train.bin", func(b []byte) []byte { return append(b, 7) }), 4 * 3074, "has data after"},
		"coarse":   {change("train.bin", func(b []byte) []byte { b[3074] = 20; return b }), 3074, "label 20 is not 0 to 19"},
		"fine":     {change("test.bin", func(b []byte) []byte { b[1] = 100; return b }), 1, "label 100 is not 0 to 99"},
		"gzip":     {change("test.bin", func(b []byte) []byte { z := gzipped(b); return z[:len(z)-3] }), 4 * 3074, ""},
		"cut tar":  {archive(whole[:len(whole)/2]), -1, ""},
		"no tar":   {archive([]byte("<html>not found</html>")), 0, "before train.bin, test.bin"},
		"half tar": {archive(gzipped(tarred(good, "a/test.bin"))), 0, "before train.bin"},
		"checksum": {archive(damaged), 0, "checksum"},
	} {
		_, err := k.read([]string{c.dir})
		var f *FileError
		if !errors.As(err, &f) || !strings.HasPrefix(f.File, c.dir) || c.offset >= 0 && f.Offset != c.offset ||
			!strings.Contains(err.Error(), c.wantErr) || !strings.Contains(err.Error(), "brood data get cifar100") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCIFARPointers: Git LFS pointers in place of the batches or the archive are recognised.
func TestCIFARPointers(t *testing.T) {
	k, files := tinyCIFAR(t, "cifar10", 4)
	pointer := []byte("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 30730000\n")
	files["data_batch_2.bin"] = pointer
	for _, dir := range []string{put(t, files), put(t, map[string][]byte{k.Archive: pointer})} {
		if _, err := k.read([]string{dir}); err == nil || !strings.Contains(err.Error(), "is a Git LFS pointer") {
			t.Errorf("%v", err)
		}
	}
}

// TestCIFAR checks the real files, or those rebuilt from JPEG copies, if installed: counts, balance, and the
// normalisation constants.
func TestCIFAR(t *testing.T) {
	for _, name := range []string{"cifar10", "cifar100"} {
		t.Run(name, func(t *testing.T) {
			s := installed(t, name)
			if len(s.Train()) != 45833 || len(s.Validation()) != 4167 || len(s.Test()) != 10000 {
				t.Errorf("%d + %d + %d samples", len(s.Train()), len(s.Validation()), len(s.Test()))
			}
			count := make([]int, s.Classes)
			for i := range s.Len() {
				count[s.Label(int32(i))]++
			}
			for c, n := range count {
				if n != 60000/s.Classes {
					t.Errorf("class %s has %d samples", s.ClassName(c), n)
				}
			}
			for c := range 3 {
				mean, std := s.spreadOfBytes(c)
				if math.Abs(mean-float64(s.Mean[c])) > 0.002 || math.Abs(std-float64(s.Std[c])) > 0.005 {
					t.Errorf("channel %d: mean %.4f and deviation %.4f, constants %.4f and %.4f", c, mean, std, s.Mean[c], s.Std[c])
				}
			}
		})
	}
}

func FuzzRecords(f *testing.F) {
	rec := append([]byte{3}, make([]byte, cifarPixels)...)
	f.Add(append(rec, rec...))
	f.Add(gzipped(append(rec, rec...)))
	f.Add(rec)
	f.Fuzz(func(t *testing.T, b []byte) {
		dst := zeroRaster(2)
		if err := readRecords(bytes.NewReader(b), "fuzz", []int{10}, dst); err == nil &&
			max(dst.Labels[0], dst.Labels[1]) > 9 {
			t.Fatalf("labels %v", dst.Labels)
		}
	})
}

func FuzzArchive(f *testing.F) {
	files := map[string][]byte{"a": []byte("first"), "b": []byte("second")}
	f.Add(tarred(files, "x/a", "x/b"))
	f.Add(gzipped(tarred(files, "b", "a")))
	f.Fuzz(func(t *testing.T, b []byte) {
		var got [2]int
		err := Unpack(bytes.NewReader(b), "fuzz", []string{"a", "b"}, func(i int, _ string, r io.Reader) error {
			got[i]++
			_, err := io.Copy(io.Discard, io.LimitReader(r, 1<<20))
			return err
		})
		if err == nil && got != [2]int{1, 1} {
			t.Fatalf("files were given %v times", got)
		}
	})
}
