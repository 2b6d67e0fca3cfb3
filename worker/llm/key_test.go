package llm_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/worker/llm"
)

const testKey = "sk-test-0123456789abcdefghij"

func TestAKeyNeverPrints(t *testing.T) {
	cfg := llm.Config{Key: llm.NewKey(" " + testKey + "\n")}
	raw, err := json.Marshal(cfg.Key)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{fmt.Sprint(cfg), fmt.Sprintf("%+v", cfg), fmt.Sprintf("%#v", cfg), fmt.Sprintf("%q", cfg.Key), string(raw)} {
		if strings.Contains(text, testKey) {
			t.Errorf("the key shows in %s", text)
		}
	}
}
