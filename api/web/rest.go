package web

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"github.com/grpc-ecosystem/grpc-gateway/v2/utilities"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
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
		runtime.WithStreamErrorHandler(func(_ context.Context, err error) *status.Status { return asStatus(err) }),
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
				// The peer must see that the file is not whole.
				panic(http.ErrAbortHandler)
			}

			if _, err := w.Write(data); err != nil || isHead(ctx) {
				return // the peer has gone, or wants no more
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
	seen := make(map[string]bool)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		first, rest, _ := strings.Cut(name, ".")
		f := fieldNamed(fields, first)
		if f == nil {
			return wrongField(name, "there is no such parameter")
		}

		// A field has two names, and both could be given.
		proper := string(f.Name()) + "." + rest
		if seen[proper] {
			return wrongField(name, "is given twice, under two names")
		}

		seen[proper] = true
		if err := (&runtime.DefaultQueryParser{}).Parse(m, url.Values{name: values[name]}, filter); err != nil {
			return wrongField(name, "%s", valueError(err))
		}
	}
	return nil
}

// fieldNamed returns the field that a peer names by either of its names, or nil.
func fieldNamed(all protoreflect.FieldDescriptors, name string) protoreflect.FieldDescriptor {
	if f := all.ByJSONName(name); f != nil {
		return f
	}
	return all.ByName(protoreflect.Name(name))
}

// valueError returns what is wrong with the value of a parameter, without the field, which
// the error names, and without the names of functions.
func valueError(err error) string {
	if e, ok := errors.AsType[*strconv.NumError](err); ok {
		return fmt.Sprintf("%q is not a value of this parameter: %v", e.Num, e.Err)
	}
	text := err.Error()
	if strings.HasPrefix(text, "parsing ") {
		_, text, _ = strings.Cut(text, ": ")
	}
	return text
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
		path := cmp.Or(pathOfWrong(m.ProtoReflect(), data), wholeBody)
		return wrongField(path, "the JSON is not a %s: %s", m.ProtoReflect().Descriptor().Name(), plainText(err))
	}
	return nil
}

// wholeBody stands for a field in errors about a body of which no field is wrong.
const wholeBody = "body"

// pathOfWrong returns the path of the first field of a message that JSON does not fit, such
// as documents[2].content; "" if the JSON is no object.
func pathOfWrong(m protoreflect.Message, data json.RawMessage) string {
	var values map[string]json.RawMessage
	if json.Unmarshal(data, &values) != nil {
		return ""
	}

	for _, name := range slices.Sorted(maps.Keys(values)) {
		f := fieldNamed(m.Descriptor().Fields(), name)
		if f == nil {
			return name
		}

		// A field is wrong if it does not fit by itself.
		one, err := json.Marshal(map[string]json.RawMessage{name: values[name]})
		if err == nil && fromJSON.Unmarshal(one, m.New().Interface()) == nil {
			continue
		}
		return string(f.Name()) + pathWithin(m, f, values[name])
	}
	return ""
}

// pathWithin returns the rest of a path within the wrong value of a field.
func pathWithin(m protoreflect.Message, f protoreflect.FieldDescriptor, data json.RawMessage) string {
	// Types of Google have forms of their own in JSON.
	if f.Message() == nil || f.IsMap() || f.Message().ParentFile().Package() == "google.protobuf" {
		return ""
	}

	below := func(m protoreflect.Message, data json.RawMessage) string {
		if path := pathOfWrong(m, data); path != "" {
			return "." + path
		}
		return ""
	}

	if !f.IsList() {
		return below(m.NewField(f).Message(), data)
	}

	var all []json.RawMessage
	if json.Unmarshal(data, &all) != nil {
		return ""
	}

	element := m.NewField(f).List().NewElement().Message()
	for i, one := range all {
		if fromJSON.Unmarshal(one, element.New().Interface()) != nil {
			return fmt.Sprintf("[%d]", i) + below(element, one)
		}
	}

	return ""
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
		// The bound is for each value, and not for the whole body.
		in.left = maxMessage
		var value json.RawMessage
		err := values.Decode(&value)

		if err == nil {
			err = m.Unmarshal(value, v)
		} else {
			err = bodyError(err)
		}

		if b, ok := r.(*body); ok && err != nil && !errors.Is(err, io.EOF) {
			b.call.refuse(err)
		}
		return err
	})
}

// bodyError returns the error about a body that has no further JSON value.
func bodyError(err error) error {
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return wrongField(wholeBody, "ends within a JSON value")
	case errors.As(err, &syntax):
		return wrongField(wholeBody, "is no JSON: %s", errs.JSONFault(syntax))
	case errors.Is(err, errTooLarge):
		return wrongField(wholeBody, "%v", err)
	}
	return err
}

var errTooLarge = fmt.Errorf("a JSON value is larger than %d bytes; large documents come in pieces", maxMessage)

// A limited reader ends with an error before it has read too much.
type limited struct {
	r    io.Reader
	left int
}

// Read implements io.Reader.
func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errTooLarge
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
