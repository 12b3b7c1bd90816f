// Package apply makes the children of one object in the cluster equal to the children that
// its builders return: it adds labels and owners, creates and updates children, runs Jobs,
// generates Secrets, and deletes children and verifies that they no longer exist.
package apply
