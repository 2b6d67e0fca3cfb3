package llm

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"slices"
)

// A Picture is an image that a model is shown. Its bytes are never part of what is hashed, kept or
// traced of a request: SHA256 stands for them.
type Picture struct {
	MediaType string `json:"media_type"` // one of MediaTypes
	Width     int    `json:"width"`      // in pixels
	Height    int    `json:"height"`
	SHA256    string `json:"sha256"` // of Data, in hexadecimal digits

	// Tokens are no fewer than any model counts for it that may be asked: see package sight. They
	// decide what is set aside for a call, and not its answer.
	Tokens int64  `json:"-"`
	Data   []byte `json:"-"`
}

// NewPicture returns a picture of a type, with a size in pixels, that counts as so many tokens.
func NewPicture(mediaType string, width, height int, tokens int64, data []byte) *Picture {
	sum := sha256.Sum256(data)
	return &Picture{MediaType: mediaType, Width: width, Height: height, SHA256: hex.EncodeToString(sum[:]), Tokens: tokens, Data: data}
}

// PictureDetail is how closely OpenAI's models are to look at a picture, and those of servers that are
// alike. With "auto" newer models would count as many tokens as they like.
const PictureDetail = "high"

// mediaTypes are the types that every vendor takes which takes pictures.
var mediaTypes = []string{"image/jpeg", "image/png"}

// URL returns the picture as an address that holds all of it.
func (p *Picture) URL() string {
	return "data:" + p.MediaType + ";base64," + base64.StdEncoding.EncodeToString(p.Data)
}

// Encoded returns how many bytes the picture takes in a request.
func (p *Picture) Encoded() int64 { return int64(base64.StdEncoding.EncodedLen(len(p.Data))) }

// check refuses a picture that no vendor would take.
func (p *Picture) check() error {
	switch {
	case !slices.Contains(mediaTypes, p.MediaType):
		return NewError(Invalid, "a picture is of the type %q, and JPEG and PNG are what all vendors take", p.MediaType)
	case len(p.Data) == 0 || p.Width < 1 || p.Height < 1:
		return NewError(Invalid, "a picture is empty: %d bytes, %d×%d pixels", len(p.Data), p.Width, p.Height)
	case p.Tokens < 1 || p.SHA256 == "":
		return NewError(Invalid, "a picture has no tokens or no hash")
	}
	return nil
}

// Pictures returns the pictures of a request, in order.
func (r *Request) Pictures() (all []*Picture) {
	for _, m := range r.Messages {
		for _, part := range m.Parts {
			if part.Picture != nil {
				all = append(all, part.Picture)
			}
		}
	}
	return all
}

// PictureTokens returns the tokens that the pictures of a request count as.
func (r *Request) PictureTokens() (n int64) {
	for _, p := range r.Pictures() {
		n += p.Tokens
	}
	return n
}

// checkPictures refuses pictures that no vendor would take, or where none takes them.
func (r *Request) checkPictures() error {
	for _, m := range r.Messages {
		for _, part := range m.Parts {
			if part.Picture == nil {
				continue
			}
			if m.Role != User {
				return NewError(Invalid, "a message of the model's has a picture, which vendors take of users alone")
			}
			if err := part.Picture.check(); err != nil {
				return err
			}
		}
	}
	return nil
}
