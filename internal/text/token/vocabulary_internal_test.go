package token

import (
	"bytes"
	"encoding/binary"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/tiktoken-go/tokenizer/codec"
)

var update = flag.Bool("update", false, "write the vocabulary anew")

// TestVocabulary checks that the table is what is made of the tokenizer's tokens.
func TestVocabulary(t *testing.T) {
	want := tableOf(t, allTokens(t))
	if *update {
		if err := os.WriteFile("o200k_base.bin", want, 0o600); err != nil {
			t.Fatal(err)
		}
		vocabulary = want
	}
	if !bytes.Equal(vocabulary, want) {
		t.Errorf("the table of %d bytes is not that of the tokenizer's tokens, of %d bytes: write it anew with -update", len(vocabulary), len(want))
	}
}

// TestRanks checks that each token is found, in the order of ranks, and nothing that a byte
// more or less makes of it, unless it is a token too.
func TestRanks(t *testing.T) {
	all := allTokens(t)
	known := make(map[string]bool, len(all))
	for _, text := range all {
		known[text] = true
	}

	last := -1
	for id, text := range all {
		rank := rankOf(text)
		if rank == noRank || int(rank) <= last {
			t.Fatalf("token %d, %q, has rank %d behind %d", id, text, rank, last)
		}
		last = int(rank)

		for _, near := range []string{text[1:], text[:len(text)-1], text + "a", text + "\x00", " " + text, text[:len(text)-1] + "\xff"} {
			if got := rankOf(near) != noRank; got != known[near] {
				t.Errorf("%q is a token: %t, want %t", near, got, known[near])
			}
		}
	}
}

// TestCountsOfTokens checks that the text of each token counts as it does with the tokenizer,
// which splits some; what is not UTF-8 is bounded here, and the tokenizer passes over U+007F.
func TestCountsOfTokens(t *testing.T) {
	c := codec.NewO200kBase()
	for id, text := range allTokens(t) {
		want, err := c.Count(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := countTokens(text); got != min(want, len(text)) && !strings.Contains(text, "\x7f") {
			t.Errorf("token %d, %q, counts as %d, want %d", id, text, got, want)
		}
	}
}

// allTokens returns the tokenizer's tokens by their rank.
func allTokens(t *testing.T) []string {
	t.Helper()
	c, all := codec.NewO200kBase(), make([]string, tokens)
	for id := range all {
		text, err := c.Decode([]uint{uint(id)})
		if err != nil {
			t.Fatalf("token %d: %v", id, err)
		}
		all[id] = text
	}
	if text, err := c.Decode([]uint{tokens}); err == nil {
		t.Fatalf("token %d is %q: there are more than %d", tokens, text, tokens)
	}
	return all
}

// tableOf makes the table of tokens.
func tableOf(t *testing.T, all []string) []byte {
	t.Helper()
	table := make([]byte, slots*slotBytes)
	for _, text := range all {
		begin := len(table) - slots*slotBytes
		if len(text) >= 1<<lengthBits || begin >= 1<<offsetBits {
			t.Fatalf("%q, from %d on, does not go into a slot", text, begin)
		}

		slot, mark := home(text)
		for binary.LittleEndian.Uint32(table[slot*slotBytes:]) != 0 {
			slot++
		}
		if slot >= slots-1 {
			t.Fatalf("%q is in slot %d; the last of %d ends searches", text, slot, slots)
		}
		binary.LittleEndian.PutUint32(table[slot*slotBytes:], mark<<(lengthBits+offsetBits)|uint32(begin)<<lengthBits|uint32(len(text)))
		table = append(table, text...)
	}
	return table
}
