package fakellm

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg" // pictures that a request may hold
	_ "image/png"
	"strings"

	"github.com/coditect/mapreduce/worker/llm/fakellm/meter"
)

// A Picture is an image that a request shows, as it was decoded from there.
type Picture struct {
	MediaType     string
	Width, Height int
	Data          []byte
}

// maxPicture bounds a picture in Base64.
const maxPicture = 5 << 20

// show takes a picture, as vendors do: its bytes have to be those of its type.
func (c *Call) show(mediaType, data string) error {
	if len(data) > maxPicture {
		return fmt.Errorf("image exceeds 5 MB maximum: %d bytes > %d bytes", len(data), maxPicture)
	}
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return errors.New("illegal base64 data in an image")
	}

	config, format, err := image.DecodeConfig(bytes.NewReader(raw))
	if err != nil {
		return errors.New("Could not process image")
	}
	if mediaType != "" && mediaType != "image/"+format {
		return fmt.Errorf("the image was specified using the %s media type, but appears to be an image/%s image", mediaType, format)
	}
	c.Pictures = append(c.Pictures, Picture{MediaType: "image/" + format, Width: config.Width, Height: config.Height, Data: raw})
	c.prompt = append(c.prompt, meter.Section{Text: fmt.Sprintf("%x", raw), Size: meter.PictureTokens(config.Width, config.Height)})
	return nil
}

// showURL takes a picture that stands in an address.
func (c *Call) showURL(url string) error {
	rest, ok := strings.CutPrefix(url, "data:")
	mediaType, data, based := strings.Cut(rest, ";base64,")
	if !ok || !based {
		return errors.New("Invalid image URL: this server fetches nothing")
	}
	return c.show(mediaType, data)
}

// showAll takes the pictures of blocks, as Anthropic and OpenAI have them.
func (c *Call) showAll(blocks content) error {
	for _, b := range blocks {
		var err error
		switch b.Type {
		case "image":
			err = c.show(b.Source.MediaType, b.Source.Data)
		case "image_url", "input_image":
			err = c.showURL(b.Image.url)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A blockImage is an address, or an object with one.
type blockImage struct{ url string }

// UnmarshalJSON implements json.Unmarshaler.
func (i *blockImage) UnmarshalJSON(raw []byte) error {
	if json.Unmarshal(raw, &i.url) == nil {
		return nil
	}
	var of struct{ URL string }
	err := json.Unmarshal(raw, &of)
	i.url = of.URL
	return err
}
