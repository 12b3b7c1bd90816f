// Package apply brings the children of one object from what a builder wants to
// what the cluster has: stamped, created or left alone, sent when something
// differs, run once, generated, deleted and seen gone.
package apply
