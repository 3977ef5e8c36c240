package session

// mine has nothing to check: temporary files are a user's own on Windows.
func mine(string) error { return nil }
