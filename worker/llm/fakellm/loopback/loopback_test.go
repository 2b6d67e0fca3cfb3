package loopback_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/coditect/mapreduce/worker/llm/fakellm/loopback"
)

// A received is what came of a response; zero if none began.
type received struct {
	status int
	header http.Header
	body   string
}

func send(ctx context.Context, t *testing.T, server http.HandlerFunc) (received, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://server/path", strings.NewReader("question"))
	if err != nil {
		t.Fatal(err)
	}

	resp, err := loopback.New(server).RoundTrip(r)
	if err != nil {
		return received{}, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	return received{resp.StatusCode, resp.Header, string(raw)}, err
}

func TestAnswers(t *testing.T) {
	got, err := send(t.Context(), t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Path", r.URL.Path)
		w.WriteHeader(http.StatusTeapot)
		w.Header().Set("X-Late", "is not sent")
		if _, err := io.Copy(w, r.Body); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}

	if got.body != "question" || got.status != http.StatusTeapot || got.header.Get("X-Path") != "/path" || got.header.Get("X-Late") != "" {
		t.Errorf("got %+v", got)
	}
}

// A server that aborts breaks the connection, before its answer or within it.
func TestBrokenConnections(t *testing.T) {
	got, err := send(t.Context(), t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	if got.status != 0 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("broken at once: got %+v, error %v", got, err)
	}

	got, err = send(t.Context(), t, func(w http.ResponseWriter, _ *http.Request) {
		if _, err := io.WriteString(w, "half"); err != nil {
			t.Error(err)
		}
		panic(http.ErrAbortHandler)
	})
	if got.status != http.StatusOK || got.body != "half" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("broken within: got %+v, error %v", got, err)
	}
}

// A call that is called off has ended when its client is told so.
func TestCalledOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := false

		_, err := send(ctx, t, func(_ http.ResponseWriter, r *http.Request) {
			cancel(why)
			<-r.Context().Done()
			synctest.Wait() // the client has seen it, and waits for this
			ended = true
		})
		if !errors.Is(err, why) || !ended {
			t.Errorf("error %v, ended %v", err, ended)
		}
	})
}
