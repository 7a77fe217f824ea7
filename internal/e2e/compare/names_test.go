package compare

import "github.com/collyrobots/collyrobots"

// These are the types that have other names in other versions. The script replaces this file by
// testdata/names_root.txt for versions without the package store/urlstore.
type (
	page      = collyrobots.Page
	pageStats = collyrobots.FrontierStats
	endOfPage = collyrobots.PageResult
	lease     = collyrobots.Lease
)
