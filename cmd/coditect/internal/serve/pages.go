package serve

import (
	"github.com/coditect/mapreduce/api/dashboard"
	fitted "github.com/coditect/mapreduce/cmd/coditect/internal/dashboard"
)

// pages returns the pages for people that are served beside what programs call.
func (cmds *commands) pages(secured *security) (*dashboard.Config, error) {
	formats, err := cmds.Runners.DocumentFormats()
	if err != nil {
		return nil, err
	}
	c := fitted.Config(cmds.Version, formats)
	c.SignIn, c.Login = secured.asked(), secured.login
	return c, nil
}
