// Package observe provides one controller with a consistent view of the cluster: the
// objects as the watches show them, or as the controller's own last write while a watch is
// behind, and the data of Secrets and ConfigMaps by version. It also determines which
// objects are reconciled again after a change.
//
// No watch is configured in advance. A pass reads objects through a View, and a change of
// any of these objects starts another pass. The watch of a kind starts with its first read,
// so that a kind whose definition is installed later needs no restart.
package observe
