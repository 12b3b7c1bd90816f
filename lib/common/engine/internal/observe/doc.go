// Package observe is the cluster as one controller may believe it: what the
// watches show, the controller's own last write where a watch is behind, the
// data of Secrets and ConfigMaps by version, and which objects are reconciled
// again when something changes.
//
// No watch is configured beforehand. A pass reads objects through a View, and a
// change of any of these objects starts another pass. A kind is watched from its
// first read on, so that a kind whose definition is installed later needs no
// restart.
package observe
