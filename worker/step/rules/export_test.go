package rules

// JoinDistinct joins the parts of a text that say what no part before them says.
func JoinDistinct(parts ...string) string { return joinDistinct(parts...) }
