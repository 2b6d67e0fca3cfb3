package document

// A Picture is a page of a document as a viewer shows it.
type Picture struct {
	Page          int     // counted from 1
	Width, Height float64 // of the page, in points
	MediaType     string  // of the data: image/png or image/jpeg
	Data          []byte
}
