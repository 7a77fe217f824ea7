// The test that another implementation accepts the logs of package audit. It is a module of its own, so that nobody who imports
// collyrobots depends on that implementation.
module github.com/collyrobots/collyrobots/audit/fscktest

go 1.25.0

replace github.com/collyrobots/collyrobots => ../..

replace github.com/collyrobots/collyrobots/audit => ..

require (
	github.com/collyrobots/collyrobots v0.1.0
	github.com/collyrobots/collyrobots/audit v0.1.0
	github.com/transparency-dev/formats v0.0.0-20251017110053-404c0d5b696c
	github.com/transparency-dev/merkle v0.0.2
	github.com/transparency-dev/tessera v1.0.4
	golang.org/x/mod v0.39.0
)

require github.com/stretchr/testify v1.12.1 // indirect

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dunglas/httpsfv v1.1.2 // indirect
	github.com/go-logr/logr v1.4.3 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/temoto/robotstxt v1.1.2 // indirect
	go.opentelemetry.io/auto/sdk v1.2.1 // indirect
	go.opentelemetry.io/otel v1.40.0 // indirect
	go.opentelemetry.io/otel/metric v1.40.0 // indirect
	go.opentelemetry.io/otel/trace v1.40.0 // indirect
	golang.org/x/net v0.50.0 // indirect
	golang.org/x/sync v0.19.0 // indirect
	golang.org/x/text v0.34.0 // indirect
	k8s.io/klog/v2 v2.130.1 // indirect
)
