module asterism.dev/tools/cluster

go 1.26.0

require (
	golang.org/x/mod v0.37.0
	golang.org/x/sys v0.47.0
)
