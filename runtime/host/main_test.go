package host

import (
	"log"
	"os"
	"runtime/debug"
	"testing"

	"brood/models/program/programtest"
	"brood/runtime/testutil"
)

// fewImages is the folder of [testutil.FewImages]. Tests use the data set glyphs instead if they are about glyphs,
// about the contents of a log of version 1, or about many samples.
var fewImages string

func TestMain(m *testing.M) {
	programtest.Main()      // this binary is also the program of the tests that train one
	debug.SetGCPercent(400) // the collector would take a sixth of the processor time
	os.Exit(withFew(m.Run))
}

// withFew runs the tests with fewImages set to a temporary folder.
func withFew(run func() int) int {
	dir, err := testutil.FewImages()
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	fewImages = dir
	return run()
}
