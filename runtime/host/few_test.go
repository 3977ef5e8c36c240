package host

import (
	"log"
	"os"
	"runtime/debug"
	"testing"

	"brood/models/program/programtest"
	"brood/runtime/testutil"
)

// fewImages is the folder of [testutil.FewImages]. A test takes glyphs where it is about glyphs, about what a version 1
// log holds, or about many samples.
var fewImages string

func TestMain(m *testing.M) {
	programtest.Main()      // this binary is also the program of the tests that train one
	debug.SetGCPercent(400) // the collector would take a sixth of the processor's time
	os.Exit(withFew(m.Run))
}

// withFew runs the tests while fewImages is there.
func withFew(run func() int) int {
	dir, err := testutil.FewImages()
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	fewImages = dir
	return run()
}
