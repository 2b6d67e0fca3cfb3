package show

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/program"
)

// A tenantUse is what use prints.
type tenantUse struct {
	Tenant mapreduce.TenantID `json:"tenant"`
	Quotas []quotaUse         `json:"quotas"`
	Keep   string             `json:"keep,omitempty"` // as in a policy; none keeps jobs until they are deleted
}

type quotaUse struct {
	Name  string `json:"name"`
	Used  int64  `json:"used"`
	Limit *int64 `json:"limit"` // null if nothing bounds it
}

func (cmds *commands) useCommand() *cobra.Command {
	var tenant string
	cmd := &cobra.Command{
		Use:   "use",
		Short: "Show what a tenant uses of its quotas",
		Long: `Use shows how many jobs, units, bytes, tokens and calls a tenant uses now, beside the
quotas that the server's policy sets for them, and for how long jobs are kept after their
end. Of tokens_per_day it shows those of this day, in UTC; of requests_per_minute the calls
that servers have taken for this minute.`,
		Example: `  coditect mapreduce use
  coditect mapreduce use --tenant research -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmds.HasNoData() {
				return cmds.printUse(&mapreduce.TenantUse{Tenant: mapreduce.TenantID(tenant)})
			}
			return cmds.WithReader(cmd.Context(), func(s *program.Session) error {
				use, err := s.TenantUse(cmd.Context(), mapreduce.TenantID(tenant))
				if err != nil {
					return err
				}
				return cmds.printUse(use)
			})
		},
	}

	cmd.Flags().StringVar(&tenant, "tenant", "", "`tenant` whose use is shown (default the tenant of the caller)")
	return cmd
}

func (cmds *commands) printUse(use *mapreduce.TenantUse) error {
	v := tenantUse{Tenant: use.Tenant, Quotas: []quotaUse{}}
	for _, q := range use.Quotas {
		one := quotaUse{Name: q.Name, Used: q.Used}
		if q.Limit > 0 {
			one.Limit = &q.Limit
		}
		v.Quotas = append(v.Quotas, one)
	}
	// 0 keeps jobs until they are deleted.
	if use.Keep > 0 {
		v.Keep = use.Keep.String()
	}

	return cmds.PrintData(v, func() {
		cmds.PrintTable("USE NOW QUOTA", func(row func(...any)) {
			for _, q := range v.Quotas {
				limit := "-"
				if q.Limit != nil {
					limit = fmt.Sprint(*q.Limit)
				}
				row(q.Name, q.Used, limit)
			}
		})
		fmt.Fprintln(cmds.Stdout, keepText(use.Keep))
	})
}

// keepText says for how long jobs are kept.
func keepText(keep time.Duration) string {
	if keep == 0 {
		return "jobs are kept until they are deleted"
	}
	return fmt.Sprintf("jobs are deleted %v after their end", keep)
}
