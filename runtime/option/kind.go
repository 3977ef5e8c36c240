package option

import (
	"errors"
	"math"
	"strconv"
	"time"
)

// Kind is the type of a value.
type Kind string

// The text of a kind is the name of its type in the help.
const (
	Text       Kind = "string"
	Whole      Kind = "int"
	Count      Kind = "uint64"
	Number     Kind = "float64"
	Span       Kind = "duration"   // a number of seconds, written such as 1m30s
	Population Kind = "population" // a whole number, or auto
)

// Nouns describe a text of each kind, after "that is no".
var Nouns = map[Kind]string{Text: "text", Whole: "whole number", Count: "whole number of 0 or more", Number: "number",
	Span: "duration such as 30s", Population: "whole number, nor auto"}

const auto = "auto"

// zero returns a pointer to a zero value.
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

// parse stores the value of text where to points.
func (k Kind) parse(text string, to any) (err error) {
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
		return errors.New(Nouns[k])
	}
	return nil
}

// format returns a text that parse reads as the value; "" for zero.
func (k Kind) format(at any) string {
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

// above returns whether the text has a value above 0, or is auto.
func (k Kind) above(text string) bool {
	switch v := k.zero().(type) {
	case *int:
		return k.parse(text, v) == nil && (*v > 0 || text == auto)
	case *uint64:
		return k.parse(text, v) == nil && *v > 0
	case *float64:
		return k.parse(text, v) == nil && *v > 0
	}
	return text != ""
}

// within returns whether the text has a value from 1 to most, or is auto.
func (k Kind) within(text string, most int) bool {
	v := new(int)
	return k.parse(text, v) == nil && (*v >= 1 && *v <= most || text == auto)
}

// formatZero returns the text of the zero value.
func (k Kind) formatZero() string {
	switch k {
	case Text:
		return ""
	case Span:
		return "0s"
	}
	return "0"
}
