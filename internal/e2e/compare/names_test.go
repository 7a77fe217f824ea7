package compare

import (
	"github.com/collyrobots/collyrobots/store/pacer"
	"github.com/collyrobots/collyrobots/store/urlstore"
)

// These are the types that have other names in other versions. The script replaces this file by
// testdata/names_root.txt for versions without the package store/urlstore.
type (
	page      = urlstore.Page
	pageStats = urlstore.Stats
	endOfPage = urlstore.Result
	lease     = pacer.Lease
)
