package document

// A Fit returns how many pixels wide and high the picture of a page is to be, whose own size it is
// given. It never asks for more than that.
type Fit func(width, height int) (int, int)

// Within returns the fit of pictures that are so many pixels wide and high at most.
func Within(most int) Fit {
	return func(width, height int) (int, int) {
		scale := min(1, float64(most)/float64(max(width, height)))
		return max(int(float64(width)*scale), 1), max(int(float64(height)*scale), 1)
	}
}

// A Picture is a page of a document as a viewer shows it.
type Picture struct {
	Page          int     // counted from 1
	Width, Height float64 // of the page, in the unit of its boxes: points, or pixels of a picture
	Across, Down  int     // pixels of the picture
	MediaType     string  // of the data: image/png or image/jpeg
	Data          []byte
}
