module github.com/collyrobots/collyrobots/store/boltstore

go 1.25.0

require (
	github.com/collyrobots/collyrobots v0.1.0
	go.etcd.io/bbolt v1.5.0
	go.uber.org/goleak v1.3.0
)

require golang.org/x/sys v0.45.0 // indirect

replace github.com/collyrobots/collyrobots => ../..
