package mapreduce

import "slices"

// Hidden stands in place of each text that an observer may not see.
const Hidden = "hidden: the role observer sees no contents"

// hide returns Hidden in place of a text, if there is one.
func hide(text string) string {
	if text == "" {
		return ""
	}
	return Hidden
}

// WithoutContents returns a copy of a job for an observer: how far it is, what it costs and what
// it is called. What it asks of which text is left out, and so is what may quote documents: why it failed,
// what its units say of themselves, and why documents were skipped. Names of documents stay.
func (j *Job) WithoutContents() *Job {
	seen := *j
	seen.Spec.Definition, seen.Spec.Schema, seen.Spec.Vars = nil, nil, nil
	seen.Spec.Output.Folder = ""
	seen.Error = hide(j.Error)
	seen.Activity = nil

	seen.Warnings = slices.Repeat([]string{Hidden}, len(j.Warnings))
	seen.Skipped = slices.Clone(j.Skipped)
	for i := range seen.Skipped {
		seen.Skipped[i].Reason = hide(seen.Skipped[i].Reason)
	}

	seen.Causes = slices.Clone(j.Causes)
	for i := range seen.Causes {
		seen.Causes[i].Cause = Hidden
	}
	return &seen
}

// WithoutContents returns a copy of a unit for an observer: its output is left out, and so is what may
// quote its document.
func (u *Unit) WithoutContents() *Unit {
	seen := *u
	seen.Output, seen.Locations = nil, nil
	seen.Errors = slices.Repeat([]string{Hidden}, len(u.Errors))
	if u.Parking != nil {
		// Whoever knows the handle can wake the unit.
		seen.Parking = &Parking{Handle: hide(u.Parking.Handle), WakeAfter: u.Parking.WakeAfter, Note: hide(u.Parking.Note), Scores: u.Parking.Scores}
	}
	return &seen
}

// WithoutContents returns a copy of a checkpoint for an observer.
func (c *Checkpoint) WithoutContents() *Checkpoint {
	seen := *c
	seen.Message, seen.Proof = hide(c.Message), Proof{}
	return &seen
}
