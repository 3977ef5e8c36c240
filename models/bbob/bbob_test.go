package bbob

import (
	"math"
	"testing"

	"brood/models/arith"
)

// valueOfOptimum returns f_opt, which the suite's reference implementation adds to the gap.
func valueOfOptimum(number, instance int) float64 {
	seed := seedOf(number, instance)
	ratio := normals(seed, 1)[0] / normals(seed+1, 1)[0]
	return min(1000, max(-1000, math.Floor(100*100*ratio+0.5)/100))
}

// TestReferenceValues compares with values of the reference implementation, from its regression test
// (github.com/numbbo/coco, code-experiments/test/regression-test/data/regression_test_2data_for_suite_bbob.py), to the
// tolerance of that test. Instances above 5 are those of 2016.
func TestReferenceValues(t *testing.T) {
	seen := map[int]bool{}
	for _, c := range []struct {
		function, instance int
		x                  []float64
		want               float64
	}{
		{1, 1, []float64{13.382317228473649, 10.13915864997532, -12.670622241727648, 21.616498180472121, 47.318782398113612}, 3409.8428938036641},
		{2, 56, []float64{0.33927018774554368, 0.34366526822518917, 0.32676357281325358, -1.6827427258365095, 1.917220386547233}, 6581233.6378474887},
		{3, 51, []float64{0.14302702011918042, 0.039389115224825216, 0.11966099246159301, -0.14627496167066412, 0.067765670924453333}, 691.73690601654528},
		{3, 5, []float64{-0.13836312584565544, -0.0062699120128144915, 0.30241968560881705}, 277.44938441488182},
		{4, 56, []float64{0.44184224186455168, -0.6865152107665744}, 65.851071898236},
		{4, 54, []float64{3.3452965440761417, 1.932155230311613, -2.490804205371199}, 265.84481314221841},
		{5, 51, []float64{3.2468494958864769, -20.113726219033669, 33.434786467508864}, 376.27684949588644},
		{6, 57, []float64{0.54109015917907599, 0.28530918960544899, 0.45625822078930206}, 31801.371870102208},
		{7, 3, []float64{-0.15589564659987321, -1.0591918840804744}, 1136.0032451796758},
		{7, 51, []float64{0.53806754481889985, 1.6729640680653468}, -24.022508029789961},
		{8, 53, []float64{0.28727599530113695, -0.10687418860968133}, 17166.10808277371},
		{9, 51, []float64{-0.015540646068605377, -5.7570896408380873e-05, 0.003714448648790343, 0.0032547617067083096, -0.0016967294840762666}, -200.80087224635434},
		{10, 3, []float64{0.21128720030087789, 2.1260343430227158, -1.6946222457322055}, 6370665.3429419538},
		{11, 4, []float64{1.9361136676810644, -1.5014043871608866}, 20918782.066791113},
		{12, 55, []float64{1.0818445359640174, 0.49199469161538473, -0.21203508836832347, 0.94891591247833362, -1.0603183740324771}, 36450210.258501075},
		{12, 2, []float64{-0.010677645622718232, -0.035406508907044359, 0.045672484833287147}, 54445154.770492151},
		{13, 55, []float64{-0.51147865554492122, -0.62557954969488738}, 580.35976947705808},
		{13, 4, []float64{-0.48527734685953461, 0.14582002833024926}, 1158.4171691629858},
		{14, 57, []float64{0.052259500970817108, -0.073635498722472173, -0.0039361870391941564}, -10.364072984459686},
		{15, 57, []float64{-1.6543940324934937, -0.1928460387382675}, 156.13397105698766},
		{16, 59, []float64{-2.6644783059727559, -3.1091775632437741, -5.5229487715524392, 2.1198291429558811, -7.7480057362031207}, 98.564871360331736},
		{17, 4, []float64{0.32598204350746929, -0.12240041586110581}, 64.360558825508548},
		{18, 3, []float64{-2.3236829137046375, -0.29582281565743079}, 383.11822241109655},
		{18, 52, []float64{-4.530179722210856, 1.1652305333011341, 7.9102783095140214, -5.3621787251924156, -2.7696804909237618}, 896.04622304497059},
		{19, 53, []float64{7.2308172471067751, -7.5788603459747543}, 3348.027526383757},
		{20, 53, []float64{-4.0841004243917798, -5.7197685484023264}, 251478.64775010647},
		{20, 51, []float64{-0.51735347198185044, 0.23606446270871731, -0.48906808455498729, -0.31315899505683742, -0.24084730224447565}, 3805.4172041419401},
		{21, 1, []float64{3.6472217223054555, -3.9785310018064211, -3.7791315682464774, -9.2294643938015017, 1.7179725043474665}, 142.31188369733121},
		{21, 2, []float64{-0.0060400531773042799, 0.18134741311115175, 0.063260617424276924}, 12.918395773565544},
		{22, 55, []float64{1.5151894465638467, -0.2280075687642758, 2.3875790758432194}, -159.62359036662883},
		{23, 3, []float64{0.094812294860924226, 0.33238069179051011}, -104.73656135785458},
		{23, 4, []float64{0.054664465076689969, 0.0038247183269724473, 0.0050028076042338086, -0.01160979023506252, 0.24351156140149319}, -210.07597929189794},
		{24, 2, []float64{-29.374959365636979, -12.309192201539119, -44.054881355911938}, 21731895.747123357},
		{24, 60, []float64{0.96854847781425657, -0.033883581289849848, 0.31127146800281486}, -901.885772169235},
	} {
		f, err := New(c.function, len(c.x), c.instance)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Gap(c.x) + valueOfOptimum(c.function, c.instance); !(math.Abs(got-c.want) <= 4e-9*math.Abs(c.want)) {
			t.Errorf("function %d, %s, instance %d in %d dimensions is %.10g, want %.10g",
				c.function, Name(c.function), c.instance, len(c.x), got, c.want)
		}
		seen[c.function] = true
	}
	if len(seen) != Functions {
		t.Errorf("%d of %d functions are compared", len(seen), Functions)
	}
}

// The gap is 0 at the optimum, which is within the domain, and above 0 nearby and far away.
func TestOptimum(t *testing.T) {
	for number := 1; number <= Functions; number++ {
		for _, n := range []int{2, 5, 10, MaxDimension} {
			f, err := New(number, n, 7)
			if err != nil {
				t.Fatal(err)
			}
			best := f.Optimum()
			if gap := f.Gap(best); gap > 1e-9 {
				t.Errorf("%s in %d dimensions: the gap at the optimum is %g", Name(number), n, gap)
			}
			for _, step := range []float64{-0.7, 0.01, 3} {
				x := make([]float64, n)
				for i, v := range best {
					if x[i] = v + step*math.Sin(float64(i+1)); number == 5 {
						x[i] = v - math.Copysign(step*step, v) // beyond the domain it is as low
					}
					if math.Abs(v) > 5 {
						t.Errorf("%s: the optimum %v is outside of the domain", Name(number), best)
					}
				}
				if gap := f.Gap(x); !(gap > 1e-9) {
					t.Errorf("%s in %d dimensions: %g from the optimum the gap is %g", Name(number), n, step, gap)
				}
			}
		}
	}
}

// Rotations are orthogonal.
func TestRotations(t *testing.T) {
	for _, n := range []int{2, 5, MaxDimension} {
		r := drawRotation(seedOf(10, 3)+1000000, n)
		for i := range n {
			for j := range n {
				dot := 0.0
				for k := range n {
					dot += r[k][i] * r[k][j]
				}
				if want := map[bool]float64{true: 1}[i == j]; math.Abs(dot-want) > 1e-12 {
					t.Errorf("in %d dimensions columns %d and %d have the product %g", n, i, j, dot)
				}
			}
		}
	}
}

// T_osz keeps 0, 1 and the sign, is monotonous, and differs from x by a factor within exp(±0.1).
func TestOscillation(t *testing.T) {
	if oscillate(0) != 0 || oscillate(1) != 1 || oscillate(-1) != -1 {
		t.Error("0, 1 or -1 moves")
	}
	before := math.Inf(-1)
	for i := -600; i <= 600; i++ {
		x := math.Copysign(arith.Exp(math.Abs(float64(i))/60-5), float64(i))
		y := oscillate(x)
		if y <= before || y*x < 0 || math.Abs(math.Log(y/x)) > 0.099 {
			t.Errorf("%g becomes %g after %g", x, y, before)
		}
		before = y
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range [][3]int{{0, 5, 1}, {25, 5, 1}, {1, 1, 1}, {1, 41, 1}, {1, 5, 0}, {1, 5, 1001}} {
		if _, err := New(c[0], c[1], c[2]); err == nil {
			t.Errorf("%v is accepted", c)
		}
	}
}
