package objective

// mapping are programs that may take parameters through shared memory: there is none here.
var mapping map[string]func(how string)
