package websearch

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// withQuery returns a GET of an address with a query.
func withQuery(base *url.URL, values url.Values) (*http.Request, error) {
	all := base.Query()
	maps.Copy(all, values)
	base.RawQuery = all.Encode()
	return http.NewRequest(http.MethodGet, base.String(), nil)
}

// askSearXNG asks a SearXNG, at its /search, for JSON. It has pages of results, of a size
// that its operator chose.
func askSearXNG(base *url.URL, _ string, q query) (*http.Request, error) {
	if !strings.HasSuffix(base.Path, "/search") {
		base = base.JoinPath("search")
	}
	values := url.Values{"q": {q.Query}, "format": {"json"}}
	if q.Recent != "" {
		values.Set("time_range", q.Recent)
	}
	return withQuery(base, values)
}

func readSearXNG(data []byte) ([]hit, error) {
	var in struct {
		Results *[]struct {
			URL           string `json:"url"`
			Title         string `json:"title"`
			Content       string `json:"content"`
			PublishedDate string `json:"publishedDate"`
		} `json:"results"`
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, fmt.Errorf("%w; search.formats of its settings has to list json", err)
	}
	// An answer without this key is none of this interface.
	if in.Results == nil {
		return nil, errors.New("it has no results")
	}

	var hits []hit
	for _, r := range *in.Results {
		hits = append(hits, hit{url: r.URL, title: r.Title, excerpt: r.Content, published: r.PublishedDate})
	}
	return hits, nil
}

// askBrave asks the Web Search API of Brave.
func askBrave(base *url.URL, key string, q query) (*http.Request, error) {
	values := url.Values{"q": {q.Query}, "count": {strconv.Itoa(q.Count)}, "text_decorations": {"false"}}
	if fresh := map[string]string{"day": "pd", "week": "pw", "month": "pm", "year": "py"}[q.Recent]; fresh != "" {
		values.Set("freshness", fresh)
	}
	req, err := withQuery(base, values)
	if err == nil {
		req.Header.Set("X-Subscription-Token", key)
	}
	return req, err
}

func readBrave(data []byte) ([]hit, error) {
	var in struct {
		Type string `json:"type"`
		Web  struct {
			Results []struct {
				URL         string   `json:"url"`
				Title       string   `json:"title"`
				Description string   `json:"description"`
				PageAge     string   `json:"page_age"`
				Age         string   `json:"age"`
				Extra       []string `json:"extra_snippets"`
			} `json:"results"`
		} `json:"web"` // left out if nothing was found
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, err
	}
	if in.Type != "search" {
		return nil, fmt.Errorf("it is of the type %.40q, not search", in.Type)
	}

	var hits []hit
	for _, r := range in.Web.Results {
		excerpt := strings.Join(append([]string{r.Description}, r.Extra...), " … ")
		hits = append(hits, hit{url: r.URL, title: r.Title, excerpt: excerpt, published: cmp.Or(r.PageAge, r.Age)})
	}
	return hits, nil
}

// askTavily asks the search of Tavily.
func askTavily(base *url.URL, key string, q query) (*http.Request, error) {
	body, err := json.Marshal(struct {
		Query      string `json:"query"`
		MaxResults int    `json:"max_results"`
		Depth      string `json:"search_depth"`
		TimeRange  string `json:"time_range,omitempty"`
	}{q.Query, q.Count, "basic", q.Recent})
	if err != nil {
		return nil, err
	}

	req, err := http.NewRequest(http.MethodPost, base.String(), bytes.NewReader(body))
	if err == nil {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+key)
	}
	return req, err
}

func readTavily(data []byte) ([]hit, error) {
	var in struct {
		Results *[]struct {
			URL           string `json:"url"`
			Title         string `json:"title"`
			Content       string `json:"content"`
			PublishedDate string `json:"published_date"`
		} `json:"results"`
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, err
	}
	// An answer without this key is none of this interface.
	if in.Results == nil {
		return nil, errors.New("it has no results")
	}

	var hits []hit
	for _, r := range *in.Results {
		hits = append(hits, hit{url: r.URL, title: r.Title, excerpt: r.Content, published: r.PublishedDate})
	}
	return hits, nil
}
