package bedrock

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/internal/sigv4"
)

// An account gives the credentials that hold now.
type account interface {
	find(ctx context.Context) (sigv4.Keys, error)
}

// findAccount returns the account of this process, from the first of these that is there: the
// variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, with AWS_SESSION_TOKEN; the profile
// AWS_PROFILE of the file ~/.aws/credentials; the address of a container's own credentials, which
// ECS and EKS set.
func findAccount(cfg llm.Config) (account, error) {
	if id := cfg.Setting("AWS_ACCESS_KEY_ID"); id != "" {
		secret := llm.NewKey(cfg.Setting("AWS_SECRET_ACCESS_KEY"))
		if secret.IsZero() {
			return nil, llm.NewError(llm.Auth, "AWS_ACCESS_KEY_ID is set, and AWS_SECRET_ACCESS_KEY is not")
		}
		return fixed{sigv4.Keys{ID: id, Secret: secret, Token: llm.NewKey(cfg.Setting("AWS_SESSION_TOKEN"))}}, nil
	}

	file := cfg.Setting("AWS_SHARED_CREDENTIALS_FILE")
	if home := cfg.Setting("HOME"); file == "" && home != "" {
		file = filepath.Join(home, ".aws", "credentials")
	}

	profile := cmp.Or(cfg.Setting("AWS_PROFILE"), "default")

	// A file without the profile is an error only if the profile was named.
	if file != "" {
		if _, err := readProfile(file, profile); err == nil {
			return shared{file, profile}, nil
		} else if cfg.Setting("AWS_PROFILE") != "" {
			return nil, llm.NewError(llm.Auth, "the profile %q of AWS_PROFILE has no keys: %v", profile, err)
		}
	}

	if at := containerURL(cfg); at != "" {
		return newContainer(at, cfg)
	}

	return nil, llm.NewError(llm.Auth, "there are no credentials for bedrock: set AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE")
}

// fixed credentials hold as long as the process.
type fixed struct{ keys sigv4.Keys }

func (f fixed) find(context.Context) (sigv4.Keys, error) { return f.keys, nil }

// shared credentials stand in a file, which tools renew.
type shared struct{ file, profile string }

func (s shared) find(context.Context) (sigv4.Keys, error) { return readProfile(s.file, s.profile) }

// readProfile returns the credentials of a profile in a file.
func readProfile(file, profile string) (sigv4.Keys, error) {
	f, err := os.Open(file)
	if err != nil {
		return sigv4.Keys{}, err
	}
	defer f.Close()

	values := make(map[string]string)
	in := false

	lines := bufio.NewScanner(io.LimitReader(f, 1<<20))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		// A line in brackets begins a profile, whether or not it is the one that is looked
		// for.
		if name, ok := strings.CutPrefix(line, "["); ok {
			in = strings.TrimSpace(strings.TrimSuffix(name, "]")) == profile
			continue
		}

		key, value, ok := strings.Cut(line, "=")
		if in && ok && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, ";") {
			values[strings.ToLower(strings.TrimSpace(key))] = strings.TrimSpace(value)
		}
	}

	if err := lines.Err(); err != nil {
		return sigv4.Keys{}, err
	}

	c := sigv4.Keys{ID: values["aws_access_key_id"], Secret: llm.NewKey(values["aws_secret_access_key"]), Token: llm.NewKey(values["aws_session_token"])}
	if c.ID == "" || c.Secret.IsZero() {
		return sigv4.Keys{}, fmt.Errorf("%s has no keys of the profile %q", file, profile)
	}

	return c, nil
}

// containerURL returns the address of a container's own credentials; "" if it has none.
func containerURL(cfg llm.Config) string {
	if path := cfg.Setting("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); path != "" {
		return "http://169.254.170.2/" + strings.TrimPrefix(path, "/")
	}
	return cfg.Setting("AWS_CONTAINER_CREDENTIALS_FULL_URI")
}

// A container is given credentials for some hours at an address.
type container struct {
	at, token, tokenFile string
	client               *http.Client

	mu      sync.Mutex // guards the fields below
	now     sigv4.Keys
	expires time.Time
}

// newContainer returns the account of a container. Its token goes to nobody else: to the addresses
// that AWS has for that, to this machine, or by TLS.
func newContainer(at string, cfg llm.Config) (account, error) {
	u, err := url.Parse(at)
	if err != nil || u.Host == "" {
		return nil, llm.NewError(llm.Invalid, "AWS_CONTAINER_CREDENTIALS_FULL_URI is no address")
	}

	ip := net.ParseIP(u.Hostname())
	own := u.Hostname() == "localhost" || ip != nil && (ip.IsLoopback() || ip.Equal(net.IPv4(169, 254, 170, 2)) || ip.Equal(net.IPv4(169, 254, 170, 23)) || ip.Equal(net.ParseIP("fd00:ec2::23")))

	if u.Scheme != "https" && !own {
		return nil, llm.NewError(llm.Invalid, "AWS_CONTAINER_CREDENTIALS_FULL_URI is neither an https address nor one of the container's host")
	}

	return &container{
		at: at, token: cfg.Setting("AWS_CONTAINER_AUTHORIZATION_TOKEN"), tokenFile: cfg.Setting("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"),
		client: &http.Client{Timeout: 10 * time.Second, Transport: cfg.Transport},
	}, nil
}

// early is how long before their end credentials are renewed.
const early = 5 * time.Minute

// find implements account.
func (c *container) find(ctx context.Context) (sigv4.Keys, error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if time.Until(c.expires) > early {
		return c.now, nil
	}

	// Credentials that hold for a little longer are good enough if no others are to be had.
	if err := c.renew(ctx); err != nil && time.Until(c.expires) <= 0 {
		return sigv4.Keys{}, llm.NewError(llm.Network, "the container's credentials are not to be had: %v", err)
	}
	return c.now, nil
}

// renew asks for new credentials. The caller holds the lock.
func (c *container) renew(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.at, nil) //nolint:gosec // the address is the environment's, as AWS has it
	if err != nil {
		return err
	}

	token := c.token
	if c.tokenFile != "" {
		raw, err := os.ReadFile(c.tokenFile) //nolint:gosec // the path is the environment's, as AWS has it
		if err != nil {
			return err
		}
		token = strings.TrimSpace(string(raw))
	}

	if token != "" {
		req.Header.Set("Authorization", token)
	}

	res, err := c.client.Do(req) //nolint:gosec // see above
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", res.StatusCode)
	}

	var answer struct {
		AccessKeyID     string `json:"AccessKeyId"`
		SecretAccessKey string
		Token           string
		Expiration      time.Time
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(&answer); err != nil {
		return err
	}
	if answer.AccessKeyID == "" || answer.SecretAccessKey == "" {
		return errors.New("the answer has no keys")
	}
	c.now = sigv4.Keys{ID: answer.AccessKeyID, Secret: llm.NewKey(answer.SecretAccessKey), Token: llm.NewKey(answer.Token)}
	c.expires = answer.Expiration
	return nil
}
