package recognise

// Parse is parse, for tests.
var Parse = parse
