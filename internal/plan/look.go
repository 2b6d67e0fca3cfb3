package plan

// A Look is what the header of a document that is a picture says that it will come to.
type Look struct {
	Text  int64 // tokens of the text that is recognised in it
	Pages int64 // whose pictures a model is shown; 0 if it is shown none
	Page  int64 // tokens of the picture of a page
	Most  int64 // pictures that a unit shows at most
}

// Show divides the pictures of a document among the units that it is cut into.
func (l Look) Show(items []Item) {
	n := int64(len(items))
	for i := range items {
		items[i].Shown = saturatingMul(min((l.Pages+n-1)/n, l.Most), l.Page)
	}
}
