// Package bedrock asks the models of Amazon Bedrock by Converse, its one interface for models of
// all vendors.
package bedrock

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/internal/sigv4"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
	"github.com/coditect/mapreduce/worker/llm/manners"
)

// A provider asks models of one region.
type provider struct {
	*wire.Dialer
	region string
	known  bool // the region is where calls go, and not a stand-in of a check that runs elsewhere
}

// New returns the provider. It reads AWS_REGION or AWS_DEFAULT_REGION, and, without a key of
// Bedrock's own, the credentials of an AWS account: see findAccount. The error is an *llm.Error of
// the kind Auth if there are none, and Invalid if no region is named, or if the address is none.
func New(cfg llm.Config) (llm.Provider, error) {
	region := cmp.Or(cfg.Setting("AWS_REGION"), cfg.Setting("AWS_DEFAULT_REGION"))
	if region == "" && cfg.BaseURL == "" && cfg.Getenv != nil {
		return nil, llm.NewError(llm.Invalid, "no region is named for bedrock: set AWS_REGION, such as to us-east-1")
	}

	// A check that runs elsewhere, and an address of one's own, need no region.
	region = cmp.Or(region, "us-east-1")
	if !validRegion.MatchString(region) {
		return nil, llm.NewError(llm.Invalid, "AWS_REGION is %q, which is no region such as us-east-1", region)
	}

	sign, err := signFor(cfg, region)
	if err != nil {
		return nil, err
	}

	p := &provider{region: region, known: cfg.Getenv != nil && cfg.BaseURL == ""}
	p.Dialer, err = wire.NewDialer(cfg, "https://bedrock-runtime."+region+"."+domainOf(region)+"/", wire.Format{
		Stream: "application/vnd.amazon.eventstream", Events: readFrames, Judge: p.judgeError, Whole: wholeEvents, Sign: sign,
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// validRegion is how regions are named.
var validRegion = regexp.MustCompile(`^[a-z]{2}(-[a-z]+){1,3}-\d{1,2}$`)

// domainOf returns the domain of a region's services.
func domainOf(region string) string {
	if strings.HasPrefix(region, "cn-") {
		return "amazonaws.com.cn"
	}
	return "amazonaws.com"
}

// signFor returns what proves who asks: a key of Bedrock's own, or a signature by an account.
func signFor(cfg llm.Config, region string) (wire.Sign, error) {
	if !cfg.Key.IsZero() {
		return wire.BearerKey(cfg.Key), nil
	}

	account, err := findAccount(cfg)
	if err != nil {
		return nil, err
	}

	// The account is asked at each request, as its credentials may be renewed meanwhile.
	return func(req *http.Request, body []byte) error {
		keys, err := account.find(req.Context())
		if err != nil {
			return err
		}
		sigv4.Sign(req, body, keys, sigv4.Scope{Region: region, Service: "bedrock"}, time.Now())
		return nil
	}, nil
}

// Name implements llm.Provider.
func (*provider) Name() string { return "bedrock" }

// Can implements llm.Provider.
func (*provider) Can() llm.Capabilities {
	return llm.Capabilities{Dialect: dialect(), ForceTool: true, Cache: true}
}

// dialect returns the dialect of outputConfig, which is that of Anthropic's models there.
func dialect() llm.Dialect {
	return llm.Dialect{
		Name: "bedrock", Closed: true, AnyOf: true, OneType: true, SmallMin: true,
		Keywords: []string{"minItems", "format"},
		Formats:  []string{"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"},
	}
}

// dialectFor returns the dialect of a model's schemas.
func dialectFor(with manners.Manners) llm.Dialect {
	d := dialect()
	if with.Plain {
		d.Keywords = nil
	}
	return d
}

// Complete implements llm.Provider.
func (p *provider) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	return p.CompleteBy(ctx, req, p)
}

// OwnForm implements wire.Asker: answers are calls of a tool at least, if the job says so. There
// is no form between those and the prompt alone.
func (p *provider) OwnForm(m manners.Manners) manners.Manners {
	m = p.Dialer.OwnForm(m)
	if m.Form == manners.ByObject {
		m.Form = manners.ByPrompt
	}
	return m
}

// SentBy implements wire.Asker.
func (p *provider) SentBy(req *llm.Request, with manners.Manners) manners.Sent {
	sent := p.Dialer.SentBy(req, with)
	sent.Cache = req.Cache != ""
	return sent
}

// Ask implements wire.Asker.
func (p *provider) Ask(c *wire.Call, req *llm.Request, with manners.Manners) (*llm.Response, error) {
	body, err := newBody(req, with)
	if err != nil {
		return nil, err
	}

	method := "converse-stream"
	if with.NoStream {
		method = "converse"
	}

	events, err := c.SendStream(wire.Request{Path: fmt.Sprintf("model/%s/%s", sigv4.Escape(string(req.Model)), method), Body: body})
	if err != nil {
		return nil, err
	}

	t := turn{model: req.Model}
	if err := t.takeAll(c, events); err != nil {
		return nil, t.noteWaste(err)
	}

	return t.toResponse(c, req.Schema != nil && with.Form == manners.ByTool)
}
