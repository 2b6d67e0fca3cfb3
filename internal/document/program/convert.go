package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/coditect/mapreduce/internal/document"
)

// A Config bounds what the conversion of a document may take. Zero fields take the defaults.
type Config struct {
	Program string        // path of LibreOffice. Defaults to the one that is installed
	Time    time.Duration // of the clock. Defaults to 2 minutes
	Memory  int64         // bytes of addresses of each of its processes, where the system can bound them. Defaults to 4 GiB
	Dir     string        // in which each conversion has a folder for a while. Defaults to that for temporary files
}

// A LibreOffice has LibreOffice convert documents. That runs once for each document, with a profile
// of its own that runs no macros and follows no links, and with bounds of its time, its memory and
// what it writes. It sees neither the settings of the user nor the keys of models. But it is no
// sandbox: it may read the files of its user. The type is safe for concurrent use.
type LibreOffice struct{ config Config }

var _ document.Converter = (*LibreOffice)(nil)

// NewLibreOffice returns a converter.
func NewLibreOffice(c Config) *LibreOffice {
	c.Program = cmp.Or(c.Program, installedPath())
	c.Time, c.Memory = cmp.Or(c.Time, 2*time.Minute), cmp.Or(c.Memory, 4<<30)
	return &LibreOffice{c}
}

// installedPath returns the path of LibreOffice; "" if it is not found.
func installedPath() string {
	for _, name := range []string{
		"soffice", "libreoffice", "/Applications/LibreOffice.app/Contents/MacOS/soffice", `C:\Program Files\LibreOffice\program\soffice.com`,
	} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// Name implements document.Converter.
func (*LibreOffice) Name() string { return "LibreOffice" }

// Convert implements document.Converter.
func (l *LibreOffice) Convert(ctx context.Context, c document.Conversion, data []byte, limits document.Limits) (made []byte, err error) {
	if l.config.Program == "" {
		return nil, document.Refuse("%s, which LibreOffice can convert, but there is none where documents are read (no soffice on the PATH): install it, or save the file as %s", c.What, c.To)
	}
	dir, err := os.MkdirTemp(l.config.Dir, "coditect-convert-")
	if err != nil {
		return nil, fmt.Errorf("convert: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := prepare(dir, c, data); err != nil {
		return nil, fmt.Errorf("convert: %w", err)
	}

	within, cancel := context.WithTimeout(ctx, l.config.Time)
	defer cancel()
	most := limits.WithDefaults().Bytes
	out, said, failed := Run{
		Command: l.command(dir, c), Dir: dir, Env: []string{"HOME=" + dir, "TMPDIR=" + dir}, Most: 1 << 10,
		Busy: l.config.Time, Memory: l.config.Memory, File: max(most, leastFile),
	}.Output(within)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case within.Err() != nil:
		return nil, document.Refuse("%s, which LibreOffice did not convert within %v", c.What, l.config.Time)
	}
	return result(dir, c, most, failed, strings.Join(strings.Fields(said+" "+out), " "))
}

// Names in the folder of a conversion.
const (
	profileName = "profile"
	outName     = "out"
	inName      = "document"
)

// prepare makes the folder of a conversion: the document, and a profile.
func prepare(dir string, c document.Conversion, data []byte) error {
	user := filepath.Join(dir, profileName, "user")
	if err := os.MkdirAll(user, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(user, "registrymodifications.xcu"), []byte(settings), 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, inName+c.From), data, 0o600)
}

// settings are those of the profile: no macro runs, whoever signed it, and nothing is fetched that
// a document refers to.
const settings = `<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry" xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
<item oor:path="/org.openoffice.Office.Common/Security/Scripting"><prop oor:name="MacroSecurityLevel" oor:op="fuse"><value>3</value></prop></item>
<item oor:path="/org.openoffice.Office.Common/Security/Scripting"><prop oor:name="DisableMacrosExecution" oor:op="fuse"><value>true</value></prop></item>
<item oor:path="/org.openoffice.Office.Common/Security/Scripting"><prop oor:name="BlockUntrustedRefererLinks" oor:op="fuse"><value>true</value></prop></item>
<item oor:path="/org.openoffice.Office.Common/Security/Scripting"><prop oor:name="DisableActiveContent" oor:op="fuse"><value>true</value></prop></item>
<item oor:path="/org.openoffice.Office.Calc/Content/Update"><prop oor:name="Link" oor:op="fuse"><value>2</value></prop></item>
<item oor:path="/org.openoffice.Office.Writer/Content/Update"><prop oor:name="Link" oor:op="fuse"><value>0</value></prop></item>
</oor:items>
`

// command returns the command of a conversion.
func (l *LibreOffice) command(dir string, c document.Conversion) []string {
	profile := "file:///" + strings.TrimPrefix(filepath.ToSlash(filepath.Join(dir, profileName)), "/")
	return []string{
		l.config.Program, "-env:UserInstallation=" + profile, "--headless", "--norestore", "--nologo", "--nodefault", "--nolockcheck",
		"--convert-to", strings.TrimPrefix(c.To, "."), "--outdir", outName, inName + c.From,
	}
}

// leastFile is how large a file may be at least that LibreOffice writes, in bytes: its profile has
// some of its own.
const leastFile = 16 << 20

// result returns what was made of a document in the folder of its conversion.
func result(dir string, c document.Conversion, most int64, failed error, said string) ([]byte, error) {
	f, err := os.Open(filepath.Join(dir, outName, inName+c.To))
	if err != nil {
		why := strings.ReplaceAll(strings.TrimSpace(fmt.Sprintf("%.200s", said)), dir, "")
		if failed != nil {
			why = strings.TrimSpace(failed.Error() + " " + why)
		}
		return nil, document.Refuse("%s, which LibreOffice did not convert (it may be damaged, or have a password): %s", c.What, cmp.Or(why, "it made no file"))
	}
	defer f.Close() //nolint:errcheck // it was only read

	made, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("convert: %w", err)
	case int64(len(made)) > most:
		return nil, document.Refuse("%s, of which LibreOffice made more than %d bytes (--document-bytes)", c.What, most)
	case failed != nil:
		return nil, document.Refuse("%s, of which LibreOffice made a part only: %v", c.What, failed)
	}
	return made, nil
}
