package wrongfile

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
)

// archive returns a zip with one file, as PyTorch and numpy write them.
func archive(name string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, _ := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
	w.Write([]byte("content"))
	z.Close()
	return b.Bytes()
}

func TestCheck(t *testing.T) {
	// its first bytes are those of protocol 2
	safetensors := append(binary.LittleEndian.AppendUint64(nil, 0x10280), "{}"...)
	for name, c := range map[string]struct {
		bytes   []byte
		wantErr string
	}{
		"pointer":     {[]byte("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"), `net is a Git LFS pointer, not the file itself: run "git lfs pull"`},
		"page":        {[]byte("\ufeff\n <!DOCTYPE html><html>"), "net is an HTML page: "},
		"bare page":   {[]byte("<HTML lang=en>"), "download the file itself"},
		"protocol 2":  {[]byte("\x80\x02}q\x00X\x01\x00\x00"), "net is a Python pickle, which may run code when it is read: load it in Python and save its tensors"},
		"protocol 4":  {[]byte("\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00}\x94"), "Python pickle"},
		"PyTorch":     {archive("net/data.pkl"), "Python pickle"},
		"NPZ":         {archive("x.npy"), ""},
		"safetensors": {safetensors, ""},
		"CSV":         {[]byte("version,label\n1,a\n"), ""},
		"XML":         {[]byte("<?xml version='1.0'?><a/>"), ""},
		"cut zip":     {[]byte("PK\x03\x04"), ""},
		"empty":       {nil, ""},
	} {
		err := Check(bytes.NewReader(c.bytes), "net", "its tensors as safetensors")
		if c.wantErr == "" && err != nil || c.wantErr != "" && (err == nil || !strings.Contains(err.Error(), c.wantErr)) {
			t.Errorf("%s: %v, want %q", name, err, c.wantErr)
		}
		if err := CheckPointer(bytes.NewReader(c.bytes), "net"); (err != nil) != (name == "pointer") {
			t.Errorf("%s as a text: %v", name, err)
		}
	}
}
