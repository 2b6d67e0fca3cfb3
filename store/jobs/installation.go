package jobs

import (
	"context"
	"fmt"
	"strings"

	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// Layout is the number of what package keys documents, as this program knows
// it. It is to be raised with any change that makes an older program misread
// what is stored.
const Layout = 2

// layoutText is the value of the format key: Layout, and the name of the installation.
const layoutText = "coditect mapreduce layout %d installation %q\n"

// Inspect looks at whose keys are under this space's prefix, which others may
// use on a store that is shared. It changes nothing. These things might happen:
//  1. nil: they are those of the installation of that name, or there are none;
//  2. store.ErrNewer: a newer version of this program wrote them;
//  3. store.ErrOlder: an older one did, whose layout is not read any more;
//  4. store.ErrForeign: another installation did, or another program.
func (j *Jobs) Inspect(ctx context.Context, name string) error {
	return j.db.View(ctx, func(tx store.Tx) error {
		_, err := readInstallation(ctx, j.db.Records(), tx, name)
		return err
	})
}

// Install makes the keys under this space's prefix those of an installation. It
// does nothing if they are, and fails as Inspect does. Of two that install at
// once one finds the other's name, as both read the whole range.
func (j *Jobs) Install(ctx context.Context, name string) error {
	return j.db.UpdateQuietly(ctx, func(tx store.Tx) error {
		found, err := readInstallation(ctx, j.db.Records(), tx, name)
		if err == nil && !found {
			tx.Set(j.db.Records().Keys.Format(), fmt.Appendf(nil, layoutText, Layout, name))
		}
		return err
	})
}

// readInstallation reports whether the installation is there.
func readInstallation(ctx context.Context, r *records.Records, tx store.Tx, name string) (found bool, err error) {
	text, err := tx.Get(ctx, r.Keys.Format())
	if err != nil {
		return false, err
	}

	if text != nil {
		return true, checkFormat(string(text), name)
	}

	// The whole range is read, so that of two that install at once one conflicts.
	pairs, _, err := tx.GetRange(ctx, r.Keys.Below(), store.RangeOptions{Limit: 1})
	if err != nil {
		return false, err
	}
	if len(pairs) > 0 {
		return false, fmt.Errorf("%w: there are keys, such as %q, and none that says that they are this program's; choose another prefix",
			store.ErrForeign, pairs[0].Key)
	}
	return false, nil
}

// checkFormat checks what the key of the format says.
func checkFormat(text, name string) error {
	var number int
	var owner string
	n, _ := fmt.Sscanf(text, layoutText, &number, &owner) // n says how far it got

	switch {
	case n >= 1 && number > Layout:
		return fmt.Errorf("%w: its layout has number %d, and this program knows those up to %d; nothing was changed",
			store.ErrNewer, number, Layout)
	case n >= 1 && number >= 1 && number < Layout:
		return fmt.Errorf("%w: its layout has number %d, and this program reads number %d alone; nothing was changed: "+
			"read its jobs with the version that wrote them, and choose another prefix", store.ErrOlder, number, Layout)
	case n < 2 || number < 1 || !strings.HasSuffix(text, "\n"):
		return fmt.Errorf("%w: the key of the format holds %.100q; choose another prefix", store.ErrForeign, text)
	case owner != name:
		return fmt.Errorf("%w: the keys are those of the installation named %q, and this one is named %q; choose another prefix, or name it so",
			store.ErrForeign, owner, name)
	}
	return nil
}
