// The adapters are a module of their own, so that programs that import collyrobots do not depend on grobotstxt.
module github.com/collyrobots/collyrobots/conformance/adapters

go 1.25.0

replace github.com/collyrobots/collyrobots => ../..

require (
	github.com/collyrobots/collyrobots v0.1.0
	github.com/jimsmart/grobotstxt v1.0.3
	github.com/temoto/robotstxt v1.1.2
)
