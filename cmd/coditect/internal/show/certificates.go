package show

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/cmd/coditect/internal/program"
)

// A Certificate is a certificate of cascades as certificates prints it.
type Certificate struct {
	ID         mapreduce.CertificateID `json:"certificate_id"`
	Kind       string                  `json:"kind"`
	Member     string                  `json:"member"`
	Oracle     string                  `json:"oracle"`
	Target     float64                 `json:"target"`
	Confidence float64                 `json:"confidence"`
	Schema     string                  `json:"schema_hash"`
	Job        mapreduce.JobID         `json:"job_id"` // whose trial it rests on
	Made       string                  `json:"made_at"`
	Seed       uint64                  `json:"seed,string"`
	Units      int64                   `json:"units"`
	Labels     int64                   `json:"labels"`
	Measures   []CertificateMeasure    `json:"measures"`
	Uses       int64                   `json:"uses"`
	Used       string                  `json:"used_at,omitempty"`
}

// A CertificateMeasure is what a certificate says of a field, or of whole records.
type CertificateMeasure struct {
	Field       string  `json:"field,omitempty"`
	Floor       float64 `json:"least_confidence"`
	Right       int64   `json:"alike"`
	Labels      int64   `json:"of"`
	AuditRight  int64   `json:"audit_alike"` // of jobs that went by it
	AuditLabels int64   `json:"audit_of"`
}

// certificateOf returns a certificate as it is printed.
func certificateOf(c *mapreduce.Certificate) Certificate {
	p := Certificate{
		ID: c.ID, Kind: c.Kind, Member: c.Member, Oracle: c.Oracle, Target: c.Target, Confidence: c.Confidence, Schema: c.Schema,
		Job: c.Job, Made: console.FormatTime(c.Made), Seed: c.Seed, Units: c.Units, Labels: c.Labels, Measures: []CertificateMeasure{}, Uses: c.Uses,
	}

	if !c.Used.IsZero() {
		p.Used = console.FormatTime(c.Used)
	}
	for _, m := range c.Measures {
		p.Measures = append(p.Measures, CertificateMeasure{m.Field, m.Floor, m.Right, m.Labels, m.AuditedRight, m.AuditLabels})
	}
	return p
}

// A certificateList is what certificates prints.
type certificateList struct {
	Certificates []Certificate `json:"certificates"`
}

func (cmds *commands) certificatesCommand() *cobra.Command {
	var tenant, drop string
	cmd := &cobra.Command{
		Use:   "certificates [--drop ID]",
		Short: "Show the certificates of cascades that later jobs use, and drop one",
		Long: `Certificates lists what jobs with --cascade and --cascade-kind have certified for jobs over more documents
of that kind: with how sure an answer of the cheaper member it is accepted, on how many labels that
rests, and what the samples of later jobs have shown of it. A certificate is dropped by itself when these
show that too many answers are wrong. --drop does so at once: the next job certifies anew.`,
		Example: `  coditect mapreduce certificates
  coditect mapreduce certificates --drop 0123456789abcdef0123456789abcdef`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t := mapreduce.TenantID(tenant)
			if drop != "" {
				id, err := readCertificateID(drop)
				if err != nil {
					return err
				}
				return cmds.WithSession(cmd.Context(), program.ModeMoveJobs, func(s *program.Session) error { return s.DropCertificate(cmd.Context(), t, id) })
			}

			// A command that only reads must not make a data directory.
			if cmds.HasNoData() {
				return cmds.printCertificates(nil)
			}
			return cmds.WithReader(cmd.Context(), func(s *program.Session) error {
				all, err := s.ListCertificates(cmd.Context(), t)
				if err != nil {
					return err
				}
				return cmds.printCertificates(all)
			})
		},
	}

	f := cmd.Flags()
	f.StringVar(&tenant, "tenant", "", "the certificates of this `tenant`")
	f.StringVar(&drop, "drop", "", "`ID` of a certificate that is dropped")
	return cmd
}

// readCertificateID returns the id that is given, or says what one looks like.
func readCertificateID(text string) (mapreduce.CertificateID, error) {
	if len(text) != 32 || strings.Trim(text, "0123456789abcdef") != "" {
		return "", exit.UsageError("--drop: %.80q is no id of a certificate, which has 32 hexadecimal digits: see certificates", text)
	}
	return mapreduce.CertificateID(text), nil
}

// printCertificates prints a row for each field of each certificate.
func (cmds *commands) printCertificates(all []mapreduce.Certificate) error {
	list := certificateList{Certificates: []Certificate{}}
	for i := range all {
		list.Certificates = append(list.Certificates, certificateOf(&all[i]))
	}

	return cmds.PrintData(list, func() {
		if len(all) == 0 {
			fmt.Fprintln(cmds.Stdout, "no certificates are kept: run with --cascade and --cascade-kind makes them")
			return
		}
		cmds.PrintTable("CERTIFICATE KIND MEMBER ORACLE TARGET FIELD FLOOR ALIKE AUDITED USES MADE JOB", func(row func(...any)) {
			for _, c := range list.Certificates {
				for i, m := range c.Measures {
					field, alike, audited := console.VisibleText(m.Field), fmt.Sprintf("%d/%d", m.Right, m.Labels), fmt.Sprintf("%d/%d", m.AuditRight, m.AuditLabels)
					if m.Field == "" {
						field = "-"
					}
					if i == 0 {
						row(c.ID, console.VisibleText(c.Kind), c.Member, c.Oracle, c.Target, field, fmt.Sprintf("%.2f", m.Floor), alike, audited, c.Uses, c.Made, c.Job)
						continue
					}
					row("", "", "", "", "", field, fmt.Sprintf("%.2f", m.Floor), alike, audited, "", "", "")
				}
			}
		})
	})
}
