package scaling

import "testing"

// TestPredictionSum: the summary has mean absolute errors, and whether bytes are exact.
func TestPredictionSum(t *testing.T) {
	all := []Prediction{{Measured: 1, Round: 1.02, Plain: .5, Bytes: 8, MeasuredBytes: 8}, {Measured: 2, Round: 1.92, Plain: 1.8, Bytes: 8, MeasuredBytes: 9}}
	const want = "2 rounds predicted: 3.0 % off on average, 95 % of them by at most 4.0 %; the plain model: 30.0 % " +
		"off on average, 95 % of them by at most 50.0 %; bytes of 1 are exact"
	if got := Sum(all); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	for i, want := range []string{
		"1 round predicted: 2.0 % off; the plain model: 50.0 % off; bytes are exact",
		"1 round predicted: 4.0 % off; the plain model: 10.0 % off; bytes are not exact",
	} {
		if got := Sum(all[i : i+1]); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}
