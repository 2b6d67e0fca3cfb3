package serve

import (
	"github.com/coditect/mapreduce/api/dashboard"
	fitted "github.com/coditect/mapreduce/cmd/coditect/internal/dashboard"
)

// pages returns the pages for people that are served beside what programs call. Parses says that
// this process has workers.
func (cmds *commands) pages(secured *security, parses bool) (*dashboard.Config, error) {
	formats, err := cmds.Runners.DocumentFormats()
	if err != nil {
		return nil, err
	}
	c := fitted.Config(cmds.Version, formats, parses)
	c.SignIn, c.Login = secured.asked(), secured.login
	return c, nil
}
