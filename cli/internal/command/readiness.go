package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/cli/cluster"
	metav1alpha1 "asterism.dev/operators/meta/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

// minKubernetes is that of config/packaging.yaml.
const minKubernetes = "1.34.0"

// errMissing ends the program with codeNotReady. The output has said what is missing.
var errMissing = errors.New("the cluster or the namespace is not ready")

// findingError is why a check is not ok.
type findingError struct{ mark, state, message string }

// Error returns one line.
func (e findingError) Error() string { return e.message }

func failed(format string, arguments ...any) error {
	return findingError{"✗ ", "failed", fmt.Sprintf(format, arguments...)}
}

// readiness is the command check without files.
type readiness struct {
	*environment
	cluster   *cluster.Cluster
	operators []string // namespaces
	rows      [][]string
	failed    bool
}

// checkCluster prints a row for each check.
func (env *environment) checkCluster(ctx context.Context, operators []string) (err error) {
	r := &readiness{environment: env, operators: operators, rows: [][]string{{"CHECK", "STATE", "MESSAGE"}}}
	if r.cluster, err = env.connect(); err != nil {
		return err
	}
	for _, check := range []struct {
		name string
		look func(context.Context) (note string, err error)
	}{
		{"Kubernetes", r.kubernetes}, {"Kinds", r.kinds}, {"Operators", r.available}, {"Namespace", r.handedOver}, {"Pod security", r.podSecurity},
	} {
		note, err := check.look(ctx)
		if err := r.add(check.name, note, err); err != nil {
			return err
		}
	}
	if err := r.inputs(ctx); err != nil {
		return err
	}
	if err := env.table(r.rows); err != nil {
		return err
	}
	if r.failed {
		return errMissing
	}
	return nil
}

// add adds the row of a check. An error that is no finding ends the command.
func (r *readiness) add(name, note string, err error) error {
	found := findingError{"✓ ", "ok", note}
	if err != nil && !errors.As(err, &found) {
		return err
	}
	r.failed = r.failed || found.state == "failed"
	if r.style().Terminal {
		found.state = found.mark + found.state
	}
	r.rows = append(r.rows, []string{name, found.state, found.message})
	return nil
}

// readError explains an error of a read. A missing right is no failure.
func readError(verb, what string, err error) error {
	switch {
	case apierrors.IsForbidden(err):
		return findingError{"… ", "not checked", "needs the right to " + verb + " " + what}
	case err != nil:
		return fmt.Errorf("%s cannot be read: %w", what, err)
	}
	return nil
}

// list reads objects; of all namespaces, if the namespace is empty. A kind that the API server
// does not serve has none.
func (r *readiness) list(ctx context.Context, what, namespace string, into client.ObjectList) error {
	err := r.cluster.WithWatch.List(ctx, into, client.InNamespace(namespace))
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil
	}
	if namespace != "" {
		what += " in namespace " + namespace
	}
	return readError("list", what, err)
}

// get reads an object. remedy is for one that does not exist.
func (r *readiness) get(ctx context.Context, kind, namespace, name, remedy string, into client.Object) error {
	err := r.cluster.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, into)
	if apierrors.IsNotFound(err) {
		return failed("%s does not exist: %s", name, remedy)
	}
	return readError("get", kind+" "+name, err)
}

func (r *readiness) kubernetes(ctx context.Context) (string, error) {
	text, err := r.cluster.Version(ctx)
	if err != nil {
		return "", readError("get", "/version", err)
	}
	found, err := utilversion.ParseGeneric(text)
	if err == nil && !found.AtLeast(utilversion.MustParseGeneric(minKubernetes)) {
		err = failed("%s: upgrade the cluster to %s or later", text, minKubernetes)
	}
	return text, err
}

// deployments returns the Deployments of the operators by name.
func (r *readiness) deployments(ctx context.Context) (map[string]appsv1.Deployment, error) {
	found := map[string]appsv1.Deployment{}
	for _, namespace := range r.operators {
		var list appsv1.DeploymentList
		if err := r.list(ctx, "Deployments", namespace, &list); err != nil {
			return nil, err
		}
		for _, o := range list.Items {
			if o.Labels["app.kubernetes.io/part-of"] == "asterism" {
				found[o.Name] = o
			}
		}
	}
	return found, nil
}

func (r *readiness) available(ctx context.Context) (string, error) {
	found, err := r.deployments(ctx)
	if err != nil {
		return "", err
	}
	var missing, waiting []string
	for _, name := range cluster.Accounts {
		if _, exists := found[name]; !exists {
			missing = append(missing, name)
		}
	}
	for name, o := range found {
		if !isAvailable(o) {
			waiting = append(waiting, "\"kubectl describe deployment -n "+o.Namespace+" "+name+"\"")
		}
	}
	slices.Sort(waiting)
	switch {
	case len(missing) > 0:
		return "", failed("%s: not found in namespace %s: \"kubectl asterism install\", or name another namespace with --operator-namespaces", accounts(missing), strings.Join(r.operators, ", "))
	case len(waiting) > 0:
		return "", failed("not available: %s", strings.Join(waiting, ", "))
	}
	return fmt.Sprintf("%d available", len(found)), nil
}

// isAvailable tells whether an operator runs. For a Deployment without replicas, Kubernetes also
// sets the condition.
func isAvailable(o appsv1.Deployment) bool {
	return o.Status.AvailableReplicas > 0 && slices.ContainsFunc(o.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Type == appsv1.DeploymentAvailable && c.Status == corev1.ConditionTrue
	})
}

// accounts names operators.
func accounts(names []string) string {
	if len(names) == len(cluster.Accounts) {
		return "the operators"
	}
	return strings.Join(names, ", ")
}

// handedOver tells whether the operators watch the namespace and have rights in it.
func (r *readiness) handedOver(ctx context.Context) (string, error) {
	name := r.cluster.Namespace
	if err := r.get(ctx, "Namespace", "", name, "\"kubectl create namespace "+name+"\", and then \"kubectl label namespace "+name+" pod-security.kubernetes.io/enforce=restricted\"", &corev1.Namespace{}); err != nil {
		return "", err
	}
	var bindings rbacv1.RoleBindingList
	if err := r.list(ctx, "RoleBindings", name, &bindings); err != nil {
		return "", err
	}
	operators, err := r.deployments(ctx)
	if notRead := (findingError{}); err != nil && !errors.As(err, &notRead) {
		return "", err
	}
	missing := slices.DeleteFunc(slices.Clone(cluster.Accounts), func(account string) bool {
		return handsOver(bindings.Items, operators[account], account, name)
	})
	switch {
	case len(missing) > 0:
		return "", failed("%s is not handed over to %s: with OLM or Helm, add it to the namespaces of the installation; otherwise kubectl apply -n %s -f .release/dist/namespace.yaml",
			name, accounts(missing), name)
	case watchesAll(operators[cluster.Accounts[0]]):
		return "the operators watch all namespaces", nil
	}
	return name + " is handed over to the operators", nil
}

func watchesAll(operator appsv1.Deployment) bool {
	namespaces, listed := watchedBy(operator)
	return listed && namespaces == ""
}

// watchedBy returns the list of the namespaces that an operator watches, if it has one; an empty
// list has all. OLM writes it into an annotation, and other installations into the environment.
// Without a list, the operator looks for RoleBindings.
func watchedBy(operator appsv1.Deployment) (namespaces string, listed bool) {
	if targets, ofOLM := operator.Spec.Template.Annotations["olm.targetNamespaces"]; ofOLM {
		return targets, true
	}
	for _, container := range operator.Spec.Template.Spec.Containers {
		for _, variable := range container.Env {
			if variable.Name == "WATCH_NAMESPACE" && variable.ValueFrom == nil {
				return variable.Value, true
			}
		}
	}
	return "", false
}

// handsOver tells whether an operator watches a namespace and is a subject of one of its
// RoleBindings. A RoleBinding that an operator looks for has the name of the account, and gives the
// ClusterRole of this name. If the Deployment of the operator is not known, only the name of the account
// counts.
func handsOver(bindings []rbacv1.RoleBinding, operator appsv1.Deployment, account, namespace string) bool {
	if watchesAll(operator) {
		return true
	}
	watched, listed := watchedBy(operator)
	if listed && !slices.Contains(strings.Split(watched, ","), namespace) {
		return false
	}
	role := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: account}
	return slices.ContainsFunc(bindings, func(b rbacv1.RoleBinding) bool {
		return slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool {
			return s.Kind == rbacv1.ServiceAccountKind && s.Name == account && (operator.Name == "" || s.Namespace == operator.Namespace)
		}) && (operator.Name == "" || listed || b.Name == account && b.RoleRef == role)
	})
}

// podSecurity compares the label with what the pods need: privileged for computes with driver
// Libvirt, and otherwise restricted, which every level admits.
func (r *readiness) podSecurity(ctx context.Context) (string, error) {
	namespace := &corev1.Namespace{}
	if err := r.get(ctx, "Namespace", "", r.cluster.Namespace, "see above", namespace); err != nil {
		return "", err
	}
	planes, err := r.planes(ctx)
	if err != nil {
		return "", err
	}
	return judgePodSecurity(namespace, slices.ContainsFunc(planes, hasLibvirt))
}

func hasLibvirt(plane metav1alpha1.ControlPlane) bool {
	return slices.ContainsFunc(plane.Spec.Nova.Cells, func(cell novav1.Cell) bool {
		return slices.ContainsFunc(cell.Computes, func(compute novav1.Compute) bool { return compute.Libvirt != nil })
	})
}

// judgePodSecurity returns what the labels of a namespace mean for its pods. privileged says that
// some of them control their node.
func judgePodSecurity(namespace *corev1.Namespace, privileged bool) (string, error) {
	const label, runOnHost = "pod-security.kubernetes.io/enforce", "asterism.dev/run-on-host"
	level := namespace.Labels[label]
	_, restricted := namespace.Labels[runOnHost]
	switch {
	case privileged && level == "":
		return "", failed("computes with driver Libvirt need the label %s=privileged of namespace %s: docs/guides/libvirt.md", label, namespace.Name)
	case level == "":
		return "no label: the default of the cluster applies", nil
	case !slices.Contains([]string{"privileged", "baseline", "restricted"}, level):
		return "", failed("%s is no level: \"kubectl label namespace %s %s=restricted --overwrite\"", level, namespace.Name, label)
	case privileged && level != "privileged":
		return "", failed("%s refuses the pods of computes with driver Libvirt: docs/guides/libvirt.md", level)
	case privileged && !restricted:
		return "", failed("the policies of config/run-on-host refuse the pods of computes with driver Libvirt without the label %s of namespace %s: docs/guides/libvirt.md", runOnHost, namespace.Name)
	}
	return level + " admits the pods", nil
}
