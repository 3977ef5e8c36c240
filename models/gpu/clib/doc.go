// Package clib calls functions of C libraries that may be installed, such as device drivers, without cgo.
package clib
