package serve

import (
	"github.com/coditect/mapreduce/api/dashboard"
	"github.com/coditect/mapreduce/cmd/coditect/internal/apart"
	fitted "github.com/coditect/mapreduce/cmd/coditect/internal/dashboard"
)

// pages returns the pages for people that are served beside what programs call. Parses says that
// this process has workers, and drawer draws pages of documents.
func (cmds *commands) pages(secured *security, parses bool, drawer *apart.Drawer) (*dashboard.Config, error) {
	formats, err := cmds.Runners.DocumentFormats()
	if err != nil {
		return nil, err
	}
	c := fitted.Config(cmds.Version, formats, parses, drawer.Func())
	c.SignIn, c.Login = secured.asked(), secured.login
	return c, nil
}
