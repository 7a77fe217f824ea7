package report

import (
	"fmt"
	"time"
)

// A Permission says that the owner of some hosts lets the crawler ignore their robots.txt files. See
// IgnoreRobots.
type Permission struct {
	// By is who has given the permission, such as "Jane Doe, webmaster of example.com".
	By string `json:"by"`
	// Reference says where the permission can be found, such as "contract 2026-17" or a URL.
	Reference string `json:"reference"`
	// Until is the time when the permission ends.
	Until time.Time `json:"until"`
}

// String returns the permission in one line.
func (p Permission) String() string {
	return fmt.Sprintf("permission of %s (%s) until %s", p.By, p.Reference, p.Until.UTC().Format("2006-01-02 15:04 MST"))
}
