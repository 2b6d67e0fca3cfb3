package results

// CascadeRows is what the table of cascades is made of.
var CascadeRows = cascadeRows
