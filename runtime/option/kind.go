package option

import (
	"errors"
	"math"
	"strconv"
	"time"
)

// Kind is how a value is written.
type Kind string

// Kinds, by what help calls their values.
const (
	Text       Kind = "string"
	Whole      Kind = "int"
	Count      Kind = "uint64"
	Number     Kind = "float64"
	Span       Kind = "duration"   // a number of seconds, written as 1m30s
	Population Kind = "population" // a whole number, or auto
)

// Wants says what a text of each kind is, after "that is no".
var Wants = map[Kind]string{Text: "text", Whole: "whole number", Count: "whole number of 0 or more", Number: "number",
	Span: "duration such as 30s", Population: "whole number, nor auto"}

const auto = "auto"

// zero points to a zero value.
func (k Kind) zero() any {
	switch k {
	case Text:
		return new(string)
	case Whole, Population:
		return new(int)
	case Count:
		return new(uint64)
	}
	return new(float64)
}

// read puts the value of a text where to points to.
func (k Kind) read(text string, to any) (err error) {
	switch to := to.(type) {
	case *string:
		*to = text
	case *int:
		if k == Population && text == auto {
			*to = Auto
			return nil
		}
		var n int64
		n, err = strconv.ParseInt(text, 0, strconv.IntSize)
		*to = int(n)
	case *uint64:
		*to, err = strconv.ParseUint(text, 0, 64)
	case *float64:
		if k != Span {
			*to, err = strconv.ParseFloat(text, 64)
			break
		}
		var d time.Duration
		d, err = time.ParseDuration(text)
		*to = d.Seconds()
	}
	if err != nil {
		return errors.New(Wants[k])
	}
	return nil
}

// text is what read reads; "" for zero.
func (k Kind) text(at any) string {
	switch at := at.(type) {
	case *string:
		return *at
	case *int:
		switch {
		case k == Population && *at == Auto:
			return auto
		case *at != 0:
			return strconv.Itoa(*at)
		}
	case *uint64:
		if *at != 0 {
			return strconv.FormatUint(*at, 10)
		}
	case *float64:
		switch {
		case *at == 0:
		case k == Span:
			return time.Duration(math.Round(*at * float64(time.Second))).String()
		default:
			return strconv.FormatFloat(*at, 'g', -1, 64)
		}
	}
	return ""
}

// above says whether a text is of a value above 0, or of auto.
func (k Kind) above(text string) bool {
	switch v := k.zero().(type) {
	case *int:
		return k.read(text, v) == nil && (*v > 0 || text == auto)
	case *uint64:
		return k.read(text, v) == nil && *v > 0
	case *float64:
		return k.read(text, v) == nil && *v > 0
	}
	return text != ""
}

// within says whether a text is of a whole number from 1 to most, or of auto.
func (k Kind) within(text string, most int) bool {
	v := new(int)
	return k.read(text, v) == nil && (*v >= 1 && *v <= most || text == auto)
}

// nothing is how zero is written.
func (k Kind) nothing() string {
	switch k {
	case Text:
		return ""
	case Span:
		return "0s"
	}
	return "0"
}
