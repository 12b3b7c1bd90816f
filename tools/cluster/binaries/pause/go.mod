module asterism.dev/tools/cluster/binaries/pause

go 1.26.0
