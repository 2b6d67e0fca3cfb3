package prose_test

import (
	"testing"

	"github.com/coditect/mapreduce/internal/text/prose"
)

// TestWhatStandsBesideAText: tags and captions are no sentences, however they end.
func TestWhatStandsBesideAText(t *testing.T) {
	for _, tt := range []struct {
		text          string
		tags, caption bool
	}{
		{"Filed under:\nHillary Clinton,\nTim Kaine,\nElections,\nMike Pence,\n2016 Presidential Debates.", true, false},
		{"Topics: #Donald Trump, #Election 2016Tags: donald trump, election 2016, RUDY GIULIANI Join Discussion ×.", true, false},
		{"Tags: politics, economy, interest rates.", true, false},
		{"Keywords: idempotency; HTTP; retries of requests.", true, false},
		{"Donald Trump, Election 2016, Rudy Giuliani, Cabinet, Secretary of State.", true, false},
		{"#Trump wins in the end #Election2016.", true, false},
		{"Donald Trump speaks during a rally in Sioux Center, Iowa, on Jan. 23, 2016. (Evan Vucci / AP)", false, true},
		{"The house stood in water for a week (Photo by Jane Doe).", false, true},
		{"The president-elect arrives to speak in Hershey (DON EMMERT/AFP/Getty Images).", false, true},
		{"The river on Sunday. Photo: Jane Doe, The Paper", false, true},
		{"ASSOCIATED PRESS The president-elect had several conversations with the president.", false, true},
		{"CHIP SOMODEVILLA VIA GETTY IMAGES The president-elect speaks with the president.", false, true},

		{"Topics: the report names three, and says that each of them was chosen by a vote.", false, false},
		{"He came, he saw, he won, he left, and nobody said a word.", false, false},
		{"Apples, pears, plums, figs and grapes are sold on the market every day of the week.", false, false},
		{"The rate rose to 3.5 percent (see the table).", false, false},
		{"The issue was closed as #12 and again as #13 in May.", false, false},
		{"The photo shows that the river rose by three metres on Sunday.", false, false},
		{"The client waits for the ACK/NAK (a reply) of the server.", false, false},
	} {
		if got := prose.IsTags(tt.text); got != tt.tags {
			t.Errorf("IsTags(%q) = %t, want %t", tt.text, got, tt.tags)
		}
		if got := prose.IsCaption(tt.text); got != tt.caption {
			t.Errorf("IsCaption(%q) = %t, want %t", tt.text, got, tt.caption)
		}
		if got := prose.IsSentence(tt.text); got && (tt.tags || tt.caption) {
			t.Errorf("%q is a sentence", tt.text)
		}
	}
}
