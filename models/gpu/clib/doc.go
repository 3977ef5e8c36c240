// Package clib takes the calls of a C library that the system has, or has not, without a compiler of C: the drivers of
// devices are such libraries.
package clib
