package data

import "brood/models/noise"

// Bytes of the text tales, and the digest that it has on every platform.
const (
	talesTrain  = 160000
	talesTest   = 32000
	TalesDigest = "blake3:2ffa5be4273797ef55d14956de299ee30c1f7c4334aebdd5bf2de9569d10299d"
)

// talesWords are what the sentences of tales are made of. A noun is written as it is or with an s behind it, and a verb
// with an s where its noun has none: what stands at the beginning of a sentence says how its verb ends.
var talesWords = struct{ nouns, adjectives, verbs, places []string }{
	nouns:      []string{"badger", "raven", "miller", "bear", "king", "cat", "duck", "tailor", "giant", "robin", "sister", "hunter"},
	adjectives: []string{"old", "clever", "hungry", "grey", "little", "brave", "silent", "golden"},
	verbs:      []string{"see", "follow", "find", "fear", "help", "call", "trick", "feed", "lead", "greet"},
	places:     []string{"in the forest", "by the river", "at the gate", "under the bridge", "on the hill", "near the mill"},
}

// tales is the first n bytes of a text that a grammar writes, a sentence a line:
//
//	sentence = subject verb object [place] "."        group = one [adjective] noun | many [adjective] noun"s"
//	subject  = group                                  one = "the" | "a"      many = "the" | "two" | "some"
//	object   = group | group "that" verb object
//
// Its words are of one stream of the synthetic data, so that a longer text begins with a shorter one.
func tales(n int) []byte {
	w := taleWriter{key: noise.Key{Purpose: noise.Data, Stream: 2}}
	for len(w.text) < n {
		w.sentence()
	}
	return w.text[:n]
}

type taleWriter struct {
	key  noise.Key
	at   int // words of the stream that were taken
	text []byte
}

func (w *taleWriter) below(n int) int {
	w.at++
	return w.key.Below(w.at-1, n)
}

func (w *taleWriter) pick(words ...string) string { return words[w.below(len(words))] }

func (w *taleWriter) word(s string) {
	if n := len(w.text); n > 0 && w.text[n-1] != '\n' {
		w.text = append(w.text, ' ')
	}
	w.text = append(w.text, s...)
}

// group is a noun with its article, and says whether it is many.
func (w *taleWriter) group() (many bool) {
	ending := ""
	if many = w.below(2) == 1; many {
		ending = "s"
		w.word(w.pick("the", "two", "some"))
	} else {
		w.word(w.pick("the", "a"))
	}
	if w.below(2) == 1 {
		w.word(w.pick(talesWords.adjectives...))
	}
	w.word(w.pick(talesWords.nouns...) + ending)
	return many
}

func (w *taleWriter) verb(many bool) {
	ending := "s"
	if many {
		ending = ""
	}
	w.word(w.pick(talesWords.verbs...) + ending)
}

func (w *taleWriter) sentence() {
	w.verb(w.group())
	for many := w.group(); w.below(4) == 0; many = w.group() {
		w.word("that")
		w.verb(many)
	}
	if w.below(2) == 1 {
		w.word(w.pick(talesWords.places...))
	}
	w.text = append(w.text, ".\n"...)
}
