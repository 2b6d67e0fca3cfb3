package document

// A Picture is a page of a document as a viewer shows it.
type Picture struct {
	Page          int     // counted from 1
	Width, Height float64 // of the page, in the unit of its boxes: points, or pixels of a picture
	MediaType     string  // of the data: image/png or image/jpeg
	Data          []byte
}
