package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"asterism.dev/cli/tree"
)

// clearTerminal moves the cursor to the top and clears the terminal.
const clearTerminal = "\x1b[H\x1b[2J"

// watch shows the state after each change, until the context ends. A terminal is drawn
// again; elsewhere each picture follows the one before.
func (s *status) watch(ctx context.Context) error {
	changes := s.cluster.Changes(ctx, s.namespace(), s.kinds()...)
	var last []tree.Node
	before := ""
	for {
		nodes, err := s.nodes(ctx)
		switch {
		case ctx.Err() != nil:
			return ready(last) // interrupted: the code tells of the last picture
		case err != nil:
			return err
		}
		last = nodes
		if now := s.signature(nodes); now != before {
			if err := s.picture(nodes, before == ""); err != nil {
				return err
			}
			before = now
		}
		if !s.awaitChange(ctx, changes) {
			return ready(last)
		}
	}
}

// awaitChange returns false when the context ends.
func (s *status) awaitChange(ctx context.Context, changes <-chan struct{}) bool {
	select {
	case <-ctx.Done():
		return false
	case <-changes:
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(settle):
		return true
	}
}

// signature is the table without ages, so that a picture is new only after a change.
func (s *status) signature(nodes []tree.Node) string {
	var text strings.Builder
	if err := tree.Write(&text, ageless(nodes), tree.Style{Namespaces: s.allNamespaces}, s.now()); err != nil {
		return err.Error()
	}
	return text.String()
}

func ageless(nodes []tree.Node) []tree.Node {
	var all []tree.Node
	for _, n := range nodes {
		n.Created = metav1.Time{}
		n.Children = ageless(n.Children)
		all = append(all, n)
	}
	return all
}

func (s *status) picture(nodes []tree.Node, first bool) error {
	switch {
	case s.style().Terminal:
		_, _ = fmt.Fprint(s.Out, clearTerminal)
	case !first && s.printer == nil:
		_, _ = fmt.Fprintln(s.Out)
	}
	return s.print(nodes)
}
