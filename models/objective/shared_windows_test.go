package objective

// mapping is empty: Windows has no shared memory for parameters.
var mapping map[string]func(how string)
