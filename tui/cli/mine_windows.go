package cli

import "io/fs"

const noFollow = 0

// mine cannot be told here.
func mine(fs.FileInfo) bool { return true }
