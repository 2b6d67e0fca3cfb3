package token

import (
	_ "embed"
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// vocabulary is a hash table of the tokens of o200k_base in the form in which it is searched: a
// map of them would take each process 35 ms and 29 MB to make. It is never written.
//
// First come slots of four bytes, little-endian, then the texts of all tokens by their rank. A
// token stands in the first free slot from that of its hash on. Behind the last slot that a hash
// has follow some more, so that no search goes on at the front. A slot has, from its lowest bit
// on, the length of the token, where it begins among the texts, and the highest bits of its hash;
// a free one is 0. `go test ./internal/text/token -run TestVocabulary -update` writes it from that of
// github.com/tiktoken-go/tokenizer, whose licence is beside it.
//
//go:embed o200k_base.bin
var vocabulary []byte

// tokens is how many there are, but for those that no text has, such as the end of a text.
const tokens = 199_998

// The bits of a slot.
const (
	lengthBits = 8
	offsetBits = 21
	markBits   = 32 - lengthBits - offsetBits
)

// The slots. With a third of those that hashes have free, two are read to find a token, and
// five to find that there is none.
const (
	homes     = tokens * 3 / 2
	slots     = homes + 128
	slotBytes = 4
)

// noRank is that of a text that is no token.
const noRank = 1<<32 - 1

// rankOf returns a number by which tokens are in the order of their ranks, where the token
// begins among the texts, or noRank.
func rankOf(text string) uint32 {
	slot, mark := home(text)
	for ; ; slot++ {
		entry := binary.LittleEndian.Uint32(vocabulary[slot*slotBytes:])
		if entry == 0 {
			return noRank
		}

		length, begin := int(entry&(1<<lengthBits-1)), entry>>lengthBits&(1<<offsetBits-1)
		if length == len(text) && entry>>(lengthBits+offsetBits) == mark {
			at := slots*slotBytes + int(begin)
			if string(vocabulary[at:at+length]) == text {
				return begin
			}
		}
	}
}

// home returns the slot from which on a token is looked for, and what its slot has of its hash.
func home(text string) (slot int, mark uint32) {
	hash := xxhash.Sum64String(text)
	return int(hash & (1<<32 - 1) * homes >> 32), uint32(hash >> (64 - markBits))
}
