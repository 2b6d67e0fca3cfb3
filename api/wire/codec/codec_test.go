package codec_test

import (
	"bytes"
	"testing"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // gRPC's own codec
	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/wire/codec"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

func TestCodecIsLikeTheOneOfGRPC(t *testing.T) {
	ours, err := codec.New()
	if err != nil {
		t.Fatal(err)
	}
	usual := encoding.GetCodecV2("proto")
	for _, size := range []int{0, 1, 1000, 1 << 10, 40_000, 1 << 20, 9 << 20} {
		m := &pb.Text{DocumentId: "u", Content: bytes.Repeat([]byte{7}, size)}
		want, err := usual.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 { // also with buffers that were used before
			got, err := ours.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Materialize(), want.Materialize()) {
				t.Errorf("%d bytes: encoded differently", size)
			}
			back := new(pb.Text)
			if err := ours.Unmarshal(got, back); err != nil || !proto.Equal(m, back) {
				t.Errorf("%d bytes: came back changed, %v", size, err)
			}
			got.Free()
		}
	}
	if ours.Name() != usual.Name() {
		t.Errorf("the name is %q", ours.Name())
	}
}

func TestCodecRefuses(t *testing.T) {
	c, err := codec.New()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Marshal("text"); err == nil {
		t.Error("marshalled what is no message")
	}
	if err := c.Unmarshal(nil, "text"); err == nil {
		t.Error("unmarshalled into what is no message")
	}
	for _, size := range []int{1, 1 << 16} {
		if _, err := c.Marshal(&pb.Text{DocumentId: "\xff", Content: make([]byte, size)}); err == nil {
			t.Error("marshalled a string that is not UTF-8")
		}
	}
}
