package vendors_test

import (
	"strings"
	"testing"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/vendors"
)

// A profile of another continent, and an ARN of another region, are refused before anything is asked,
// with what can be asked there.
func TestRegionsOfModels(t *testing.T) {
	for _, c := range []struct {
		region string
		model  llm.Model
		want   string // "" is asked
	}{
		{"us-east-1", "us.anthropic.claude-haiku-4-5-v1:0", ""},
		{"eu-central-1", "eu.anthropic.claude-haiku-4-5-v1:0", ""},
		{"ap-northeast-1", "jp.anthropic.claude-haiku-4-5-v1:0", ""},
		{"me-central-1", "apac.amazon.nova-lite-v1:0", ""},
		{"ca-central-1", "us.amazon.nova-lite-v1:0", ""},
		{"eu-west-2", "global.anthropic.claude-haiku-4-5-v1:0", ""},
		{"eu-west-2", "anthropic.claude-3-haiku-v1:0", ""},
		{"eu-west-2", "arn:aws:bedrock:eu-west-2:1:inference-profile/eu.anthropic.claude", ""},
		{"eu-central-1", "us.anthropic.claude-haiku-4-5-v1:0", "eu.anthropic.claude-haiku-4-5-v1:0 and global.anthropic.claude-haiku-4-5-v1:0 may be asked"},
		{"us-west-2", "eu.anthropic.claude-haiku-4-5-v1:0", "us.anthropic"},
		{"us-west-2", "jp.anthropic.claude-haiku-4-5-v1:0", "us.anthropic"},
		{"ap-southeast-2", "eu.amazon.nova-lite-v1:0", "apac.amazon.nova-lite-v1:0"},
		{"us-gov-west-1", "us.amazon.nova-lite-v1:0", "us-gov.amazon.nova-lite-v1:0"},
		{"eu-central-1", "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude", "set it to us-east-1"},
	} {
		p, err := vendors.New("bedrock", llm.Config{Key: llm.NewKey(testKey), Getenv: settingsOf(map[string]string{"AWS_REGION": c.region})})
		if err != nil {
			t.Fatal(err)
		}
		err = p.(llm.ModelChecker).CheckModel(c.model)
		if err == nil != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s in %s: %v, want %q", c.model, c.region, err, c.want)
		}
	}
	p, err := vendors.New("bedrock", llm.Config{Key: llm.NewKey(testKey)}) // of a check: the workers' region is not known
	if err != nil {
		t.Fatal(err)
	}
	if err := p.(llm.ModelChecker).CheckModel("eu.amazon.nova-lite-v1:0"); err != nil {
		t.Error(err)
	}
}

// The key of another vendor, or of no vendor, is sent to nobody, and is not shown.
func TestKeysOfOthers(t *testing.T) {
	for _, c := range []struct{ vendor, key, want string }{
		{"openai", "sk-ant-api03-0123456789", "ask the provider anthropic"},
		{"anthropic", "sk-0123456789T3BlbkFJ0123456789", "one of openai"},
		{"anthropic", "sk-svcacct-0123456789", "one of openai"},
		{"openai", "AIzaSy0123456789", "one of gemini"},
		{"vertex", "AIzaSy0123456789", "one of gemini"},
		{"gemini", "ya29.0123456789", "one of vertex"},
		{"openai", "sk-or-v1-0123456789", "one of openrouter"},
		{"anthropic", "ABSK0123456789", "one of bedrock"},
		{"bedrock", "AKIA0123456789", "no key of bedrock"},
		{"openai", "ghp_0123456789", "no key of openai"},
		{"together", "hf_0123456789", "no key of together"},
		{"groq", "xai-0123456789", "one of xai"},
		{"mistral", "tgp_v1_0123456789", "one of together"},
	} {
		_, err := vendors.New(c.vendor, llm.Config{Key: llm.NewKey(c.key), Getenv: settingsOf(map[string]string{"AWS_REGION": "us-east-1", "GOOGLE_CLOUD_PROJECT": "p"})})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "0123456789") {
			t.Errorf("%s with %s: %v, want %q", c.vendor, c.key, err, c.want)
		}
	}
	for vendor, key := range map[string]string{"vertex-claude": "ya29.a", "vertex": "ya29.a", "deepseek": "sk-0123456789abcdef", "openai": "sk-proj-a", "mistral": "0123456789"} {
		if _, err := vendors.New(vendor, llm.Config{Key: llm.NewKey(key), Getenv: settingsOf(map[string]string{"GOOGLE_CLOUD_PROJECT": "p"})}); err != nil {
			t.Errorf("%s: %v", vendor, err)
		}
	}
}
