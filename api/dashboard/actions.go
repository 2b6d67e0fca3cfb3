package dashboard

import (
	"context"
	"net/http"

	"github.com/coditect/mapreduce/api/dashboard/jobs"
	"github.com/coditect/mapreduce/api/dashboard/visit"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// maxForm bounds a form that has no files, in bytes.
const maxForm = 256 << 10

// readForm reads a form of a page, within its bounds.
func readForm(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return errs.Field("form", "cannot be read: %w", err)
	}
	return nil
}

// act returns what does something with a job, and leads back to its page. The service keeps who
// did it.
func (d *Dashboard) act(name string) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := readForm(w, r); err != nil {
			return err
		}

		v := d.visit(r)
		id, err := v.Job()
		if err != nil {
			return err
		}
		if err := d.do(v, r, name, id); err != nil {
			return err
		}

		to := v.JobPath(id)
		switch name {
		case "delete":
			to = d.config.Prefix + "/"
		case "wake":
			to = v.JobPath(id, "units", r.PostFormValue("at"))
		case "mark":
			to = v.JobPath(id, "errors")
		}
		if r.Header.Get("Accept") == "application/json" { // a script goes there, and stays where it is if something is refused
			return sendJSON(w, map[string]string{"to": to})
		}
		http.Redirect(w, r, to, http.StatusSeeOther) //nolint:gosec // a path of ours with an id that was checked
		return nil
	}
}

func (d *Dashboard) do(v *visit.Visit, r *http.Request, name string, id mapreduce.JobID) error {
	var err error

	switch name {
	case "pause":
		_, err = v.Jobs.PauseJob(v, id)
	case "cancel":
		_, err = v.Jobs.CancelJob(v, id)
	case "delete":
		err = v.Jobs.DeleteJob(v, id)
	case "wake":
		_, err = v.Jobs.WakeUnit(v, id, mapreduce.UnitID(r.PostFormValue("unit")), r.PostFormValue("handle"), []byte(r.PostFormValue("answer")))
	case "budget":
		err = setBudget(v, id, r.PostFormValue("budget"))
	case "mark":
		err = jobs.MarkCause(v, id, r.PostFormValue("cause"), r.PostFormValue("state"))
	case "resume":
		err = resume(v, id, r.PostFormValue("budget"), r.PostFormValue("cause"))
	}

	return err
}

// resume resumes a job, with a new budget if somebody has typed one: all of it, or the units that
// failed for a cause.
func resume(v *visit.Visit, id mapreduce.JobID, budget, cause string) error {
	how := mapreduce.Resume{Cause: cause}
	if budget != "" {
		var err error
		if how.Budget, how.BudgetIn, err = mapreduce.ParseBudget(budget); err != nil {
			return errs.Field("budget", "%w", err)
		}
	}
	// Half of a cause's units must not stay failed because somebody closes the page.
	_, err := v.Jobs.ResumeJob(context.WithoutCancel(v), id, how)
	return err
}

// setBudget gives a job that runs another budget. One that has stopped meanwhile stays as it is: somebody resumes it
// with that budget, or not.
func setBudget(v *visit.Visit, id mapreduce.JobID, budget string) error {
	j, err := v.Jobs.GetJob(v, id)
	switch {
	case err != nil:
		return err
	case !j.State.Running():
		return errs.New(errs.Precondition, "job %s does not run any more: resume it with the new budget", id)
	case budget == "":
		return errs.Field("budget", "is missing")
	}
	return resume(v, id, budget, "")
}
