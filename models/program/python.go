package program

import _ "embed"

// Python is brood.py, the module that serves torch modules and functions of Python.
//
//go:embed python/brood.py
var Python string
