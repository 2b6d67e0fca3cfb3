package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"github.com/grpc-ecosystem/grpc-gateway/v2/utilities"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/coditect/mapreduce/api/errs"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
	rest "github.com/coditect/mapreduce/proto/rest/coditect/mapreduce/v1"
)

// maxMessage bounds the JSON of one message of a peer, in bytes, about. Larger documents
// come in pieces.
const maxMessage = 16 << 20

// newREST returns what answers calls by REST: what is generated from proto/rest, and two
// methods whose answers are files.
func newREST() (http.Handler, error) {
	mux := runtime.NewServeMux(
		runtime.WithMarshalerOption(runtime.MIMEWildcard, marshaler{}),
		runtime.WithErrorHandler(func(_ context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, _ *http.Request, err error) {
			writeError(w, err)
		}),
		runtime.WithIncomingHeaderMatcher(passedOn),
		runtime.WithOutgoingHeaderMatcher(func(string) (string, bool) { return "", false }),
		runtime.WithOutgoingTrailerMatcher(func(string) (string, bool) { return "", false }),
		runtime.SetQueryParameterParser(strictQuery{}),
		runtime.WithDisablePathLengthFallback(),
		runtime.WithDisableHTTPMethodOverride(),
	)
	jobs := pb.NewMapReduceServiceClient(relay{})
	err := errors.Join(
		rest.RegisterMapReduceServiceHandlerClient(context.Background(), mux, jobs),
		rest.RegisterAdminServiceHandlerClient(context.Background(), mux, pb.NewAdminServiceClient(relay{})),
		mux.HandlePath(http.MethodGet, "/v1/jobs/{job_id}/result.json", sendFile(mux, pb.MapReduceService_GetResultFile_FullMethodName, "application/json",
			func(ctx context.Context, q *pb.GetResultFileRequest) (func() ([]byte, error), error) {
				stream, err := jobs.GetResultFile(ctx, q)
				return func() ([]byte, error) { p, err := stream.Recv(); return p.GetData(), err }, err
			})),
		mux.HandlePath(http.MethodGet, "/v1/jobs/{job_id}/text", sendFile(mux, pb.MapReduceService_ReadText_FullMethodName, "text/plain; charset=utf-8",
			func(ctx context.Context, q *pb.ReadTextRequest) (func() ([]byte, error), error) {
				stream, err := jobs.ReadText(ctx, q)
				return func() ([]byte, error) { p, err := stream.Recv(); return p.GetText(), err }, err
			})),
	)
	return mux, err
}

// passedOn lists the headers that the server gets beside Authorization: those of a trace.
func passedOn(header string) (string, bool) {
	switch header {
	case "Traceparent", "Tracestate":
		return strings.ToLower(header), true
	}
	return "", false
}

// sendFile returns a handler that answers with the bytes of a stream, one after another. A
// stream that fails after its first bytes breaks the connection, as nothing else says that
// a file is not whole.
func sendFile[Q any, M interface {
	*Q
	proto.Message
}](mux *runtime.ServeMux, method, kind string, open func(context.Context, M) (func() ([]byte, error), error)) runtime.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request, path map[string]string) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		next, err := openFile(ctx, mux, method, r, path, open)
		if err != nil {
			writeError(w, err)
			return
		}
		w.Header().Set("Content-Type", kind)
		for sent := false; ; sent = true {
			data, err := next()
			switch {
			case errors.Is(err, io.EOF):
				return
			case err != nil && !sent:
				writeError(w, err)
				return
			case err != nil:
				panic(http.ErrAbortHandler)
			}
			if _, err := w.Write(data); err != nil {
				return // the peer has gone
			}
		}
	}
}

func openFile[Q any, M interface {
	*Q
	proto.Message
}](ctx context.Context, mux *runtime.ServeMux, method string, r *http.Request, path map[string]string, open func(context.Context, M) (func() ([]byte, error), error)) (func() ([]byte, error), error) {
	ctx, err := runtime.AnnotateContext(ctx, mux, r, method)
	if err != nil {
		return nil, err
	}
	q := M(new(Q))
	if err := (strictQuery{}).Parse(q, r.URL.Query(), utilities.NewDoubleArray([][]string{{"job_id"}})); err != nil {
		return nil, err
	}
	if err := runtime.PopulateFieldFromPath(q, "job_id", path["job_id"]); err != nil {
		return nil, errs.Field("job_id", "%w", err)
	}
	return open(ctx, q)
}

// strictQuery refuses parameters that a method does not have.
type strictQuery struct{}

// Parse implements runtime.QueryParameterParser.
func (strictQuery) Parse(m proto.Message, values url.Values, filter *utilities.DoubleArray) error {
	fields := m.ProtoReflect().Descriptor().Fields()
	for name := range values {
		first, _, _ := strings.Cut(name, ".")
		if fields.ByJSONName(first) == nil && fields.ByName(protoreflect.Name(first)) == nil {
			return errs.Field(name, "there is no such parameter")
		}
	}
	return (&runtime.DefaultQueryParser{}).Parse(m, values, filter)
}

// A marshaler reads and writes messages as JSON, in the form that Protocol Buffers define.
type marshaler struct{}

var (
	_        runtime.Marshaler         = marshaler{}
	_        runtime.StreamContentType = marshaler{}
	toJSON                             = protojson.MarshalOptions{}
	fromJSON                           = protojson.UnmarshalOptions{}
)

// ContentType implements runtime.Marshaler.
func (marshaler) ContentType(any) string { return "application/json" }

// StreamContentType implements runtime.StreamContentType.
func (marshaler) StreamContentType(any) string { return "application/x-ndjson" }

// Marshal implements runtime.Marshaler. Beside messages it gets what has one: what a stream
// brings, or why it has ended.
func (marshaler) Marshal(v any) ([]byte, error) {
	part := func(m proto.Message) (json.RawMessage, error) {
		data, err := toJSON.Marshal(m)
		if err != nil {
			return nil, err
		}
		var b bytes.Buffer
		err = json.Compact(&b, data) // else its blanks are random
		return b.Bytes(), err
	}
	switch v := v.(type) {
	case proto.Message:
		return part(v)
	case map[string]any:
		return marshalParts(v, part)
	case map[string]proto.Message:
		parts := make(map[string]any, len(v))
		for name, m := range v {
			parts[name] = m
		}
		return marshalParts(parts, part)
	}
	return nil, fmt.Errorf("a %T is no message", v)
}

func marshalParts(parts map[string]any, part func(proto.Message) (json.RawMessage, error)) ([]byte, error) {
	all := make(map[string]json.RawMessage, len(parts))
	for name, v := range parts {
		m, ok := v.(proto.Message)
		if !ok {
			return nil, fmt.Errorf("a %T is no message", v)
		}
		var err error
		if all[name], err = part(m); err != nil {
			return nil, err
		}
	}
	return json.Marshal(all)
}

// Unmarshal implements runtime.Marshaler.
func (marshaler) Unmarshal(data []byte, v any) error {
	m, ok := v.(proto.Message)
	if !ok {
		return fmt.Errorf("a %T is no message", v)
	}
	if err := fromJSON.Unmarshal(data, m); err != nil {
		return fmt.Errorf("the JSON is not a %s: %s", m.ProtoReflect().Descriptor().Name(), plainText(err))
	}
	return nil
}

// plainText returns what protojson says of an error without the name of its package.
func plainText(err error) string {
	text := strings.ReplaceAll(err.Error(), "\u00a0", " ") // it has either, by chance
	return strings.TrimPrefix(text, "proto: ")
}

// NewEncoder implements runtime.Marshaler.
func (m marshaler) NewEncoder(w io.Writer) runtime.Encoder {
	return runtime.EncoderFunc(func(v any) error {
		data, err := m.Marshal(v)
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	})
}

// NewDecoder implements runtime.Marshaler: it reads one JSON value after another, none of
// which may be very large.
func (m marshaler) NewDecoder(r io.Reader) runtime.Decoder {
	in := &limited{r: r}
	values := json.NewDecoder(in)
	return runtime.DecoderFunc(func(v any) error {
		in.left = maxMessage
		var value json.RawMessage
		if err := values.Decode(&value); err != nil {
			if errors.Is(err, io.ErrUnexpectedEOF) {
				return errors.New("the body ends within a JSON value")
			}
			return err
		}
		return m.Unmarshal(value, v)
	})
}

// A limited reader ends with an error before it has read too much.
type limited struct {
	r    io.Reader
	left int
}

// Read implements io.Reader.
func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, fmt.Errorf("a JSON value is larger than %d bytes; large documents come in pieces", maxMessage)
	}
	n, err := l.r.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}

// outgoing returns a context with the headers of a request that the server gets.
func outgoing(ctx context.Context, h http.Header) context.Context {
	var pairs []string
	for name, values := range h {
		key, ok := passedOn(name)
		if name == "Authorization" {
			key, ok = "authorization", true
		}
		for _, v := range values {
			if ok {
				pairs = append(pairs, key, v)
			}
		}
	}
	return metadata.AppendToOutgoingContext(ctx, pairs...)
}
