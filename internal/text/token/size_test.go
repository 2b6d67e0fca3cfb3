package token_test

import (
	"strings"
	"testing"

	"github.com/coditect/mapreduce/internal/text/token"
)

// B15.
func TestSize(t *testing.T) {
	seven := func(string) int64 { return 7 }
	lost := func(string) int64 { return -1 }
	for _, test := range []struct {
		name     string
		text     string
		provider int64
		estimate token.Estimator
		want     int64
		source   token.Source
	}{
		{"the provider", "abcd", 12, nil, 12, token.Counted},
		{"the provider counts none", "abcd", 0, nil, 0, token.Counted},
		{"the provider wins", "abcd", 12, seven, 12, token.Counted},
		{"none wins too", "abcd", 0, seven, 0, token.Counted},
		{"the estimator", "abcd", token.Unknown, seven, 7, token.Estimated},
		{"the estimator is lost", "abcd", token.Unknown, lost, 1, token.Guessed},
		{"no characters", "", token.Unknown, nil, 0, token.Guessed},
		{"3 characters", "abc", token.Unknown, nil, 0, token.Guessed},
		{"4 characters", "abcd", token.Unknown, nil, 1, token.Guessed},
		{"400 characters", strings.Repeat("x", 400), token.Unknown, nil, 100, token.Guessed},
		{"characters, not bytes", "收据收据", token.Unknown, nil, 1, token.Guessed},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, source := token.Size(test.text, test.provider, test.estimate)
			if got != test.want || source != test.source {
				t.Errorf("%d by the %s, want %d by the %s", got, source, test.want, test.source)
			}
		})
	}
}

func TestEstimators(t *testing.T) {
	const text = "The supplier shall deliver the goods." // 37 characters, 7 tokens
	counter := token.New()
	for _, test := range []struct {
		name   string
		want   int64
		source token.Source
	}{
		{"", 7, token.Estimated},
		{"o200k_base", 7, token.Estimated},
		{"characters", 9, token.Guessed},
		{"characters/4", 9, token.Estimated}, // somebody has said so
		{"characters/4.9", 7, token.Estimated},
		{"characters/1", 37, token.Estimated},
		{"characters/16", 2, token.Estimated},
	} {
		estimate, err := token.Named(test.name, counter.Count)
		if err != nil {
			t.Errorf("%q: %v", test.name, err)
			continue
		}
		got, source := token.Size(text, token.Unknown, estimate)
		if got != test.want || source != test.source {
			t.Errorf("%q: %d by the %s, want %d by the %s", test.name, got, source, test.want, test.source)
		}
	}
}

func TestNoEstimators(t *testing.T) {
	for _, name := range []string{
		"cl100k_base", "O200K_BASE", "characters/", "characters/0", "characters/0.99", "characters/16.1", "characters/-4",
		"characters/NaN", "characters/Inf", "characters/four", "characters 4", " ", "4",
	} {
		_, err := token.Named(name, token.New().Count)
		if err == nil || !strings.Contains(err.Error(), "o200k_base, characters, or characters/N") {
			t.Errorf("%q: error = %v; want one that says what there is", name, err)
		}
	}
}
