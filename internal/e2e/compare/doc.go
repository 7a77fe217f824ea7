// Package compare compares two versions of collyrobots with random crawls. It has only tests and a
// script:
//
//	internal/e2e/compare/compare OLD NEW [COUNT]
//
// The script builds this driver with the commits OLD and NEW. For each seed, both builds run the
// same random crawl in a bubble of testing/synctest and write a record of it: the callbacks, errors,
// events, log messages, Stats and Decisions of the plugin, and the access log of the server, with
// exact instants. The two records must be equal byte by byte.
//
// The driver uses the public API only, and names few of its types. So the same driver compiles with
// old and new versions. names_test.go has the types that have moved.
package compare
