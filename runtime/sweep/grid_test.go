package sweep

import (
	"fmt"
	"strings"
	"testing"
)

func TestAxes(t *testing.T) {
	for _, c := range []struct {
		words string
		want  string // the points, or a part of the error
	}{
		{"", "[[]]"},
		{"eta=0.01,0.1", "[[0.01] [0.1]]"},
		{"members=1..3", "[[1] [2] [3]]"},
		{"members=1..3,8", "[[1] [2] [3] [8]]"},
		{"n=1..64*2", "[[1] [2] [4] [8] [16] [32] [64]]"},
		{"n=1..60*2", "[[1] [2] [4] [8] [16] [32]]"},
		{"eta=0.001..1*10", "[[0.001] [0.01] [0.1] [1]]"},
		{"a=1,2 b=x,y", "[[1 x] [1 y] [2 x] [2 y]]"},
		{"eta=step:0.1,9=0.01 eta=0.2", "[[step:0.1,9=0.01] [0.2]]"},
		{"eta=cosine:0.1..0.001@200", "[[cosine:0.1..0.001@200]]"},
		{"wire=float32,bf16", "[[float32] [bf16]]"},
		{"eta", "write NAME=VALUES"},
		{"eta=", "write NAME=VALUES"},
		{"eta=1,,2", "a value is missing"},
		{"eta=1,1", "eta: 1 is given twice"},
		{"eta=1 eta=1", "eta: 1 is given twice"},
		{"n=8..1", "8..1 descends"},
		{"n=1..8*1", "does not grow"},
		{"n=0..8*2", "does not grow"},
		{"n=0.1..0.5", "not whole numbers"},
		{"n=1..many", `"many" is not a number`},
		{"n=1..inf", `"inf" is not a number`},
		{"n=1..2000", "more than 1000 values"},
		{"a=1..100 b=1..100 c=1..100", "more than 100000 points"},
	} {
		axes, err := ParseAxes(strings.Fields(c.words))
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprint(Points(axes))
		}
		if err == nil && got != c.want || err != nil && !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", c.words, got, c.want)
		}
	}
}
