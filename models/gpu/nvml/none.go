//go:build nogpu || !(linux || windows) || !(amd64 || arm64)

package nvml

// Read knows nothing: brood was built without it, or for a system that has none.
func Read(string) Reading { return unknown }
