package wire

// SpecFields is specFields.
var SpecFields = specFields
