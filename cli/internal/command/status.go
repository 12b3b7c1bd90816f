package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/printers"

	"asterism.dev/cli/cluster"
	"asterism.dev/cli/tree"
)

// status is the command status.
type status struct {
	*environment
	cluster       *cluster.Cluster
	printer       printers.ResourcePrinter // nil for a table
	kind          schema.GroupVersionKind  // of the only root; empty for all
	name          string                   // of the only root; empty for all
	allNamespaces bool
	warned        bool
	incomplete    error // if a kind of Asterism cannot be read
}

func newStatus(env *environment) *cobra.Command {
	s := &status{environment: env}
	watch := false
	cmd := &cobra.Command{
		Use:   "status [NAME | KIND/NAME]",
		Short: "Show control planes with their children, and why an object is not ready.",
		Long: `Show each ControlPlane of the namespace with the objects that the operators have
created for it, and each object of Asterism that you created without a ControlPlane.
Below an object that is not ready, the cause is shown once: the object at the end of
the chain, its condition and its message. On a terminal, ✓ marks what is ready, … what
is in progress, and ✗ what is not ready for another reason.

The command ends with 0 if every object is ready, with 1 if an object is not ready or not
available, and with 2 if there is no object, if objects of Asterism cannot be read, or
after an error.`,
		Example: `  kubectl asterism status -n openstack
  kubectl asterism status demo -n openstack --watch
  kubectl asterism status novacell/demo-cell1 -n openstack -o yaml`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: env.completeObject,
	}
	output := addOutput(cmd)
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "Show the state again after each change, until the program is interrupted")
	cmd.Flags().BoolVarP(&s.allNamespaces, "all-namespaces", "A", false, "Show the control planes of all namespaces")
	cmd.RunE = func(cmd *cobra.Command, arguments []string) (err error) {
		if s.printer, err = output.printer(); err != nil {
			return err
		}
		if err := s.choose(arguments); err != nil {
			return err
		}
		if s.cluster, err = env.connect(); err != nil {
			return err
		}
		if watch {
			return s.watch(cmd.Context())
		}
		return s.once(cmd.Context())
	}
	return cmd
}

func (s *status) choose(arguments []string) error {
	if len(arguments) == 0 {
		return nil
	}
	word, name, isReference := strings.Cut(arguments[0], "/")
	if !isReference {
		s.name = word
		return nil
	}
	kind, err := cluster.KindOf(word)
	s.kind, s.name = kind, name
	return err
}

// kinds are the kinds of the tree.
func kinds() []schema.GroupVersionKind { return append(cluster.Own(), cluster.Workloads...) }

// ofCluster tells whether the only root has no namespace.
func (s *status) ofCluster() bool { return slices.Contains(cluster.OwnClusterScoped(), s.kind) }

// kinds are those of the tree that the command line means.
func (s *status) kinds() []schema.GroupVersionKind {
	if s.allNamespaces || s.ofCluster() {
		return append(kinds(), cluster.OwnClusterScoped()...)
	}
	return kinds()
}

// namespace is that of the tree; empty for all.
func (s *status) namespace() string {
	if s.allNamespaces || s.ofCluster() {
		return ""
	}
	return s.cluster.Namespace
}

// once shows the state.
func (s *status) once(ctx context.Context) error {
	nodes, err := s.nodes(ctx)
	if err != nil {
		return err
	}
	if err := s.print(nodes); err != nil {
		return err
	}
	if err := ready(nodes); err != nil {
		return err
	}
	return s.incomplete
}

// ready returns an error if an object of Asterism's kinds, or one that a person has named, is not
// ready or not available. The operators judge the other objects: a Job that has failed before its
// last run is no fault.
func ready(nodes []tree.Node) error {
	for _, n := range nodes {
		if n.Counted && (n.Ready != metav1.ConditionTrue || n.Unavailable()) || ready(n.Children) != nil {
			return errNotReady
		}
	}
	return nil
}

// roots returns the objects that the command line means, and the forest in which they stand.
func (s *status) roots(ctx context.Context) (*tree.Forest, []*unstructured.Unstructured, error) {
	objects, unread, err := s.cluster.Objects(ctx, s.namespace(), s.kinds()...)
	if err != nil {
		return nil, nil, err
	}
	if !s.warned {
		s.hintUnread(unread)
		s.warned = true
		if slices.ContainsFunc(unread, func(u cluster.UnreadError) bool { return u.Own }) {
			s.incomplete = errors.New("what is shown is ready, and the state of what cannot be read is unknown")
		}
	}
	forest := tree.New(objects)
	roots := forest.Roots()
	if s.name != "" {
		roots = forest.Select(s.kind.Kind, s.name)
	}
	switch {
	case len(roots) == 0 && len(unread) > 0:
		return nil, nil, fmt.Errorf("nothing is found, and %w: ask for the role view in the namespace", unread[0])
	case len(roots) == 0:
		return nil, nil, s.notFound()
	}
	return forest, roots, nil
}

func (s *status) nodes(ctx context.Context) ([]tree.Node, error) {
	forest, roots, err := s.roots(ctx)
	if err != nil {
		return nil, err
	}
	var nodes []tree.Node
	for _, root := range roots {
		node := forest.Node(root)
		node.Counted = true
		nodes = append(nodes, node)
	}
	return nodes, nil
}

// below returns the objects that the arguments of a command mean, and all objects below them, and
// the forest in which they stand.
func (env *environment) below(ctx context.Context, access *cluster.Cluster, arguments []string) ([]*unstructured.Unstructured, *tree.Forest, error) {
	s := &status{environment: env, cluster: access}
	if err := s.choose(arguments); err != nil {
		return nil, nil, err
	}
	forest, roots, err := s.roots(ctx)
	if err != nil {
		return nil, nil, err
	}
	var found []*unstructured.Unstructured
	for _, root := range roots {
		found = append(found, forest.Below(root)...)
	}
	return found, forest, nil
}

func (s *status) notFound() error {
	where := "namespace " + s.namespace()
	if s.namespace() == "" {
		where = "the cluster"
	}
	switch {
	case s.name != "":
		what := cmp.Or(s.kind.Kind, "object of Asterism")
		return fmt.Errorf("%s has no %s with the name %s: \"kubectl asterism status -A\" shows all", where, what, s.name)
	case s.allNamespaces:
		return errors.New("the cluster has no object of Asterism: create a ControlPlane")
	}
	return fmt.Errorf("%s has no object of Asterism: name another namespace with -n, or use -A", where)
}

func (s *status) print(nodes []tree.Node) error {
	if s.printer != nil {
		return printDocument(s.Out, s.printer, "StatusList", nodes)
	}
	style := s.style()
	style.Namespaces = s.allNamespaces
	return tree.Write(s.Out, nodes, style, s.now())
}

// settle is the time in which changes after a change belong to the same picture.
const settle = 300 * time.Millisecond
