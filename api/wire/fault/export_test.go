package fault

// SpecFields is specFields.
var SpecFields = specFields
