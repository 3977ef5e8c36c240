package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"maps"
	"runtime"
	"strings"
	"testing"
	"unicode"

	"github.com/fxamacker/cbor/v2"
)

// forge changes a frame and recomputes its CRC, so that only the change can be the reason for a refusal.
func forge(f []byte, change func([]byte)) []byte {
	f = bytes.Clone(f)
	change(f)
	sum := crc32.Update(crc32.Checksum(f[:12], castagnoli), castagnoli, f[16:])
	binary.LittleEndian.PutUint32(f[12:], sum)
	return f
}

func next(b []byte) (Header, []byte, error) { return NewReader(bytes.NewReader(b)).Next() }

func TestHostileFrames(t *testing.T) {
	fs := sampleFrames(t)
	le := binary.LittleEndian
	for name, c := range map[string]struct {
		frame   []byte
		wantErr string
	}{
		"magic":            {forge(fs["leave"], func(b []byte) { b[0] = 'X' }), "it begins with"},
		"version":          {forge(fs["leave"], func(b []byte) { b[4] = 9 }), "the peer speaks wire version 9, this program speaks 3"},
		"kind 0":           {forge(fs["leave"], func(b []byte) { b[5] = 0 }), "kind 0 is unknown"},
		"kind 200":         {forge(fs["leave"], func(b []byte) { b[5] = 200 }), "kind 200 is unknown"},
		"compressed":       {forge(fs["leave"], func(b []byte) { b[6] = 1 }), "flags 0x1"},
		"long name":        {forge(fs["data"], func(b []byte) { b[7] = 255 }), "name of 255 bytes"},
		"4 GiB":            {forge(fs["data"], func(b []byte) { le.PutUint32(b[8:], 1<<32-1) }), "a payload of 4294967295 bytes"},
		"over its limit":   {forge(fs["hello"], func(b []byte) { le.PutUint32(b[8:], 16<<10+1) }), "a payload of 16385 bytes"},
		"heartbeat of 63":  {forge(fs["heartbeat"], func(b []byte) { le.PutUint32(b[8:], 63) }), "a heartbeat of 63"},
		"epoch of a Leave": {forge(fs["leave"], func(b []byte) { b[32] = 1 }), "fields of data"},
		"name on a Leave":  {forge(fs["leave"], func(b []byte) { b[7] = 3 }), "fields of data"},
		"beyond its total": {forge(fs["data"], func(b []byte) { le.PutUint64(b[64:], 1<<30-4) }), "5 bytes at 1073741820 of a message of 1073741824"},
		"offset wraps":     {forge(fs["data"], func(b []byte) { le.PutUint64(b[64:], 1<<64-3) }), "of a message of"},
		"total too small":  {forge(fs["data"], func(b []byte) { le.PutUint64(b[56:], 1) }), "of a message of 1"},
		"nothing of a lot": {forge(fs["data-empty"], func(b []byte) { le.PutUint64(b[56:], 10) }), "0 bytes at 0 of a message of 10"},
		"NUL in a name":    {forge(fs["data"], func(b []byte) { b[73] = 0 }), "printable ASCII"},
		"escape in a name": {forge(fs["data"], func(b []byte) { b[73] = 27 }), "printable ASCII"},
	} {
		_, p, err := next(c.frame)
		if err == nil || !strings.Contains(err.Error(), c.wantErr) || p != nil {
			t.Errorf("%s: %v, want %q", name, err, c.wantErr)
		}
		var f *FormatError
		var v *VersionError
		if !errors.As(err, &f) && !errors.As(err, &v) {
			t.Errorf("%s: %T", name, err)
		}
	}
}

// TestEveryByteIsChecked: a frame with any byte changed is refused, and one cut anywhere returns io.ErrUnexpectedEOF.
func TestEveryByteIsChecked(t *testing.T) {
	for name, f := range sampleFrames(t) {
		for i := range f {
			b := bytes.Clone(f)
			b[i] ^= 0x40
			if _, _, err := next(b); err == nil {
				t.Errorf("%s: byte %d may be anything", name, i)
			}
			_, _, err := next(f[:i])
			want := io.ErrUnexpectedEOF
			if i == 0 {
				want = io.EOF
			}
			if err != want {
				t.Errorf("%s cut at %d: %v", name, i, err)
			}
		}
	}
}

// TestLengthsAllocateNothing: a length alone allocates little, and a payload in pieces of any size arrives complete.
func TestLengthsAllocateNothing(t *testing.T) {
	payload := bytes.Repeat([]byte("payload "), MaxData/8)
	h := Header{Kind: KindData, Total: MaxData}
	head, err := h.Append(nil, payload)
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 {
		if _, _, err := next(head); err != io.ErrUnexpectedEOF {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if n := (after.TotalAlloc - before.TotalAlloc) / 100; n > 3*firstPiece/2 {
		t.Errorf("a claimed length allocates %d bytes", n)
	}
	_, p, err := NewReader(io.MultiReader(bytes.NewReader(head), oneByOne{bytes.NewReader(payload)})).Next()
	if err != nil || !bytes.Equal(p, payload) {
		t.Errorf("%d bytes, %v", len(p), err)
	}
}

type oneByOne struct{ r io.Reader }

func (o oneByOne) Read(p []byte) (int, error) { return o.r.Read(p[:min(len(p), 1000)]) }

func TestWritersRefuseInvalidFrames(t *testing.T) {
	big := make([]byte, MaxData+1)
	for name, h := range map[string]Header{
		"long op": {Kind: KindData, Op: strings.Repeat("x", 65)}, "no kind": {}, "escape": {Kind: KindData, Op: "\x1b"},
		"data of a Leave": {Kind: KindLeave, Seq: 1},
	} {
		if _, err := h.Append(nil, nil); err == nil {
			t.Errorf("%s is written", name)
		}
	}
	if _, err := (Header{Kind: KindData, Total: 1 << 40}).Append(nil, big); err == nil {
		t.Error("an oversized shard is written")
	}
	if _, err := Marshal(Header{}, Message{Body: make([]byte, MaxBody+100)}); err == nil {
		t.Error("an oversized body is written")
	}
	f, err := Marshal(Header{}, Message{Kind: 16, Body: make([]byte, MaxBody)})
	if err != nil {
		t.Fatal(err)
	}
	if h, p, err := next(f); err != nil {
		t.Error(err)
	} else if m, err := Unmarshal(h, p); err != nil || len(m.(Message).Body) != MaxBody {
		t.Error(err)
	}
}

func raw(t *testing.T, v any) []byte {
	t.Helper()
	b, err := cbor.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestHostileMessages(t *testing.T) {
	deep := any(1)
	for range 100 {
		deep = []any{deep}
	}
	hello := func(more map[int]any) []byte {
		m := map[int]any{1: Version, 3: 1, 6: make([]byte, 32)}
		maps.Copy(m, more)
		return raw(t, m)
	}
	many := make([]string, 17)
	for name, c := range map[string]struct {
		kind    Kind
		payload []byte
	}{
		"nothing":             {KindHello, nil},
		"rubbish":             {KindHello, []byte{0xff, 0xff}},
		"a list":              {KindHello, raw(t, []int{1, 2})},
		"trailing bytes":      {KindLeave, append(raw(t, map[int]any{1: "x"}), 0)},
		"deep":                {KindHello, hello(map[int]any{11: deep})},
		"two names":           {KindLeave, []byte{0xa2, 1, 0x61, 'a', 1, 0x61, 'b'}},
		"indefinite":          {KindLeave, []byte{0xbf, 1, 0x61, 'a', 0xff}},
		"tag":                 {KindLeave, []byte{0xa1, 1, 0xc0, 0x61, 'a'}},
		"not UTF-8":           {KindLeave, []byte{0xa1, 1, 0x61, 0xff}},
		"claimed 4 GiB":       {KindLeave, []byte{0xa1, 1, 0x7a, 0xff, 0xff, 0xff, 0xff}},
		"claimed 2^63":        {KindLeave, []byte{0xa1, 1, 0x7b, 0x80, 0, 0, 0, 0, 0, 0, 0}},
		"no role":             {KindHello, hello(map[int]any{3: 0})},
		"role 4":              {KindHello, hello(map[int]any{3: 4})},
		"role 257":            {KindHello, hello(map[int]any{3: 257})},
		"short node":          {KindHello, hello(map[int]any{6: make([]byte, 31)})},
		"long run":            {KindHello, hello(map[int]any{2: make([]byte, 17)})},
		"17 addresses":        {KindHello, hello(map[int]any{7: many})},
		"another version":     {KindHello, hello(map[int]any{1: Version + 1})},
		"negative worker":     {KindWelcome, raw(t, map[int]any{1: Version, 3: -1})},
		"worker 2^32":         {KindWelcome, raw(t, map[int]any{1: Version, 3: 1 << 32})},
		"lane 9":              {KindOpen, raw(t, map[int]any{1: Version, 3: 0, 4: 1, 5: make([]byte, 16), 6: 9})},
		"a pair with itself":  {KindOpen, raw(t, map[int]any{1: Version, 3: 1, 4: 1, 5: make([]byte, 16)})},
		"cut beyond epochs":   {KindOpen, raw(t, map[int]any{1: Version, 3: 0, 4: 1, 5: make([]byte, 16), 7: uint64(1) << 63})},
		"Opened beyond":       {KindOpened, raw(t, map[int]any{1: Version, 2: uint64(1) << 33})},
		"200 lanes":           {KindLanes, raw(t, map[int]any{1: 200})},
		"message kind 2^16":   {KindMessage, raw(t, map[int]any{1: 1 << 16})},
		"data is no message":  {KindData, nil},
		"kind 77":             {77, nil},
		"heartbeat from text": {KindHeartbeat, raw(t, map[int]any{1: "now"})},
	} {
		m, err := Unmarshal(Header{Kind: c.kind}, c.payload)
		if err == nil {
			t.Errorf("%s reads as %+v", name, m)
			continue
		}
		var f *FormatError
		var v *VersionError
		if !errors.As(err, &f) && !errors.As(err, &v) {
			t.Errorf("%s: %T: %v", name, err, err)
		}
	}
	if m, err := Unmarshal(Header{Kind: KindLeave}, raw(t, map[int]any{1: "x", 99: []int{1}})); err != nil ||
		m != (Leave{"x"}) {
		t.Errorf("an unknown key: %+v, %v", m, err)
	}
}

func TestHostileRosters(t *testing.T) {
	contact := func(i uint32, a ...string) PeerAddress { return PeerAddress{Index: i, Addresses: a} }
	for name, r := range map[string]Roster{
		"twice": {contact(1), contact(1)}, "descending": {contact(2), contact(1)}, "nobody": {contact(NoWorker)},
		"no port": {contact(0, "host")}, "17 addresses": {contact(0, make([]string, 17)...)},
	} {
		if _, err := r.Message(); err == nil {
			t.Errorf("%s is written", name)
		}
		if _, err := ParseRoster(raw(t, rosterBody{r})); err == nil {
			t.Errorf("%s is read", name)
		}
	}
	r := Roster{contact(1, "a:1"), contact(5), contact(1 << 31)}
	for _, i := range []uint32{1, 5, 1 << 31} {
		if s, ok := r.Find(i); !ok || s.Index != i {
			t.Errorf("contact %d: %v %v", i, s, ok)
		}
	}
	if _, ok := r.Find(4); ok {
		t.Error("found a contact that is not there")
	}
}

func TestNamesAreCleaned(t *testing.T) {
	evil := "a\x00b\x1b[31mred\x1b[0m\nline\u202edlrow\u200b\x9b31m../../etc\\passwd\r"
	h := Hello{
		Role:     Worker,
		Name:     evil,
		Software: evil,
		Kernels:  evil,
		Device:   evil,
		Listen:   []string{evil},
		Data:     map[string]string{evil: evil},
	}
	f, err := Marshal(Header{}, h)
	if err == nil { // the byte 0x9b alone is not UTF-8
		head, p, _ := next(f)
		_, err = Unmarshal(head, p)
	}
	if err == nil {
		t.Error("invalid UTF-8 is read")
	}
	evil = strings.ReplaceAll(evil, "\x9b", "\u009b")
	h = Hello{
		Role:     Worker,
		Name:     evil,
		Software: evil,
		Kernels:  evil,
		Device:   evil,
		Listen:   []string{evil},
		Data:     map[string]string{evil: evil},
	}
	f, err = Marshal(Header{}, h)
	if err != nil {
		t.Fatal(err)
	}
	head, p, err := next(f)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Unmarshal(head, p)
	if err != nil {
		t.Fatal(err)
	}
	got := m.(Hello)
	texts := []string{got.Name, got.Software, got.Kernels, got.Listen[0]}
	for k, v := range got.Data {
		texts = append(texts, k, v)
	}
	for _, s := range texts {
		for _, r := range s {
			if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
				t.Errorf("%q has %q", s, r)
			}
		}
	}
	if want := "ab[31mred[0m linedlrow31m.._.._etc_passwd"; got.Name != want {
		t.Errorf("name %q, want %q", got.Name, want)
	}
	for in, want := range map[string]string{"..": "__", ".": "_", " a ": "a", "": "", "\x00": "", "h\u00e9": "h\u00e9",
		strings.Repeat("x", 1000): strings.Repeat("x", 64), "a/../b": "a_.._b"} {
		if s := CleanName(in); s != want {
			t.Errorf("%q becomes %q, want %q", in, s, want)
		}
	}
	if s := CleanText(strings.Repeat("\u00e9", 1000)); len([]rune(s)) != 512 {
		t.Errorf("a long sentence becomes %d characters", len([]rune(s)))
	}
}

func TestNodeIDs(t *testing.T) {
	n := node32(200)
	if got, err := ParseNodeID(n.String()); err != nil || !got.Equal(n) || len(n.String()) != 52 {
		t.Errorf("%v, %v", got, err)
	}
	for _, s := range []string{"", "x", n.String() + "a", n.String()[:51], strings.Repeat("!", 52)} {
		if _, err := ParseNodeID(s); err == nil {
			t.Errorf("%q is an id", s)
		}
	}
	if n.Equal(node32(201)) || n.Short() != n.String()[:10] {
		t.Error("ids")
	}
}

func TestRefusalsNameBothVersions(t *testing.T) {
	s := RefuseVersion(9).Error()
	if !strings.Contains(s, "version 9") || !strings.Contains(s, "program speaks 3") {
		t.Error(s)
	}
}
