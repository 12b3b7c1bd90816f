// Package report collects what a developer needs to find the cause of a fault: objects,
// events and logs, without secrets.
package report

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"asterism.dev/cli/cluster"
	"asterism.dev/cli/internal/mask"
	"asterism.dev/cli/tree"
)

// Options bound a report.
type Options struct {
	Namespace  string    // of the control plane
	Operators  []string  // namespaces of the operators
	Version    string    // of this program
	Now        time.Time // of the report
	Since      time.Duration
	MaxSize    int64 // of all logs, in bytes
	MaxLogSize int64 // of one log, in bytes
	Progress   func(string)
}

// collection is a report that is being written.
type collection struct {
	Options
	cluster *cluster.Cluster
	archive *archive
	masker  *mask.Masker
	unread  []cluster.UnreadError
	logs    int64 // bytes of logs so far
}

// Write writes a report as a tar.gz file. It returns what could not be read, which the report
// also lists. An error is one of the archive itself.
func Write(ctx context.Context, c *cluster.Cluster, out io.Writer, options Options) ([]cluster.UnreadError, error) {
	r := &collection{Options: options, cluster: c, masker: mask.New(), archive: newArchive(out, options.Now)}
	namespaces := []string{r.Namespace}
	for _, namespace := range r.Operators {
		if !slices.Contains(namespaces, namespace) {
			namespaces = append(namespaces, namespace)
		}
	}
	r.archive.add("version", []byte("asterism\n"+r.Version+"\n"))
	for _, namespace := range namespaces { // before everything that the values of Secrets mask
		r.Progress("Secrets of namespace " + namespace)
		r.secrets(ctx, namespace)
	}
	for _, namespace := range namespaces {
		r.Progress("objects of namespace " + namespace)
		r.objects(ctx, namespace)
	}
	r.clusterScoped(ctx)
	r.status(ctx)
	for _, namespace := range namespaces {
		r.Progress("logs of namespace " + namespace)
		r.podLogs(ctx, namespace)
	}
	r.archive.add("unread.txt", []byte(r.unreadText()))
	return r.unread, r.archive.close()
}

func (r *collection) miss(what string, err error) {
	text := r.masker.Text(err.Error())
	r.unread = append(r.unread, cluster.UnreadError{What: what, Err: fmt.Errorf("%s", text)})
}

// unreadText lists what the report lacks, so that its reader does not take a missing object
// for one that does not exist.
func (r *collection) unreadText() string {
	if len(r.unread) == 0 {
		return "Everything was read.\n"
	}
	var text strings.Builder
	for _, u := range r.unread {
		text.WriteString(u.Error() + "\n")
	}
	return text.String()
}

// status adds the tree that the command status prints.
func (r *collection) status(ctx context.Context) {
	objects, _, err := r.cluster.Objects(ctx, r.Namespace, append(cluster.Own(), cluster.Workloads...)...)
	if err != nil {
		r.miss("the tree of namespace "+r.Namespace, err)
		return
	}
	forest := tree.New(objects)
	var nodes []tree.Node
	for _, root := range forest.Roots() {
		nodes = append(nodes, forest.Node(root))
	}
	var text strings.Builder
	if err := tree.Write(&text, nodes, tree.Style{}, r.Now); err != nil {
		r.miss("the tree of namespace "+r.Namespace, err)
	}
	r.archive.add("status.txt", []byte(r.masker.Text(text.String())))
}

// secrets adds the names and the keys of Secrets, and lets the masker learn their values.
func (r *collection) secrets(ctx context.Context, namespace string) {
	var list corev1.SecretList
	if err := r.cluster.WithWatch.List(ctx, &list, inNamespace(namespace)); err != nil {
		r.miss(cluster.What(cluster.Secret, namespace), err)
		return
	}
	var all []any
	for _, secret := range list.Items {
		r.masker.Learn(secret.Namespace+"/"+secret.Name, secret.Data)
		all = append(all, withoutValues(secret))
	}
	if len(all) > 0 {
		r.archive.add(file(namespace, "core", "secrets.yaml"), document(all))
	}
}
