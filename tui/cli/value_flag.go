package cli

// valueFlag is a flag of a value that package pflag cannot parse. It implements pflag.Value.
type valueFlag[T any] struct {
	to     *T
	kind   string // key of kinds, and the placeholder of the value in help texts
	parse  func(text string) (T, error)
	format func(T) string
}

func (f valueFlag[T]) String() string { return f.format(*f.to) }
func (f valueFlag[T]) Type() string   { return f.kind }

// Set implements pflag.Value.
func (f valueFlag[T]) Set(text string) (err error) {
	*f.to, err = f.parse(text)
	return err
}
