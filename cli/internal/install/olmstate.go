package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/cli/cluster"
	"asterism.dev/cli/tree"
)

// catalogReady looks at the CatalogSource, and at the pod that serves the catalog.
func (p *planner) catalogReady(ctx context.Context) (bool, string, error) {
	catalog, err := p.get(ctx, catalogKind, p.CatalogNamespace, catalogName)
	if err != nil || catalog == nil {
		return false, "CatalogSource " + catalogName + " does not exist", err
	}
	state := field(catalog, "status", "connectionState", "lastObservedState")
	if state == "READY" {
		return true, "", nil
	}
	pods, err := p.list(ctx, cluster.Pod, p.CatalogNamespace)
	if err != nil {
		return false, "", err
	}
	forest := tree.New(pods)
	for _, pod := range pods {
		if pod.GetLabels()["olm.catalogSource"] == catalogName {
			if cause := forest.CauseOf(pod); cause != nil {
				return false, cause.String(), nil
			}
		}
	}
	return false, because(name(catalog)+" is "+cmp.Or(state, "not read yet"), field(catalog, "status", "message")), nil
}

// versionReady looks whether a version and everything that OLM has installed with it runs.
func (p *planner) versionReady(ctx context.Context, namespace, wanted string) (bool, string, error) {
	own, err := p.get(ctx, subscriptionKind, namespace, catalogName)
	if err != nil || own == nil {
		return false, "Subscription " + namespace + "/" + catalogName + " does not exist", err
	}
	subscriptions, err := p.list(ctx, subscriptionKind, namespace)
	if err != nil {
		return false, "", err
	}
	if trouble := troubleOf(append([]*unstructured.Unstructured{own}, subscriptions...)); trouble != "" {
		return false, trouble, nil
	}
	installPlan, trouble, err := p.planState(ctx, own)
	if err != nil || trouble != "" {
		return false, trouble, err
	}
	if state, err := p.versionsState(ctx, namespace, subscriptions, installPlan); err != nil || state != "" {
		return false, state, err
	}
	if installed := field(own, "status", "installedCSV"); installed != wanted {
		return false, fmt.Sprintf("%s has installed %s, not %s: %s", name(own), cmp.Or(installed, "nothing"), wanted,
			cmp.Or(field(own, "status", "state"), "OLM has not answered yet")), nil
	}
	return true, "", nil
}

// failed is the phase of an InstallPlan or a ClusterServiceVersion that OLM has given up.
const failed = "Failed"

// faults are the conditions of a Subscription that tell why it is not installed, the most
// telling first.
var faults = []string{"ResolutionFailed", "BundleUnpackFailed", "InstallPlanFailed", "CatalogSourcesUnhealthy"}

func troubleOf(subscriptions []*unstructured.Unstructured) string {
	for _, fault := range faults {
		for _, o := range subscriptions {
			if c := tree.Condition(o, fault); c.Status == metav1.ConditionTrue {
				return because(name(o)+" "+fault+" "+c.Reason, c.Message)
			}
		}
	}
	return ""
}

// planState returns the InstallPlan of a Subscription, and why it does not go on.
func (p *planner) planState(ctx context.Context, own *unstructured.Unstructured) (*unstructured.Unstructured, string, error) {
	reference := field(own, "status", "installPlanRef", "name")
	if reference == "" {
		return nil, "", nil
	}
	installPlan, err := p.get(ctx, planKind, own.GetNamespace(), reference)
	if err != nil || installPlan == nil {
		return nil, "", err
	}
	approved, _, _ := unstructured.NestedBool(installPlan.Object, "spec", "approved")
	switch phase := field(installPlan, "status", "phase"); {
	case !approved && field(installPlan, "spec", "approval") == "Manual":
		approve := Command{Args: []string{kubectl, "patch", "installplan", reference, "-n", own.GetNamespace(), "--type=merge", "-p", `{"spec":{"approved":true}}`}}
		return installPlan, name(installPlan) + " waits for an approval: " + approve.String(), nil
	case phase == failed:
		c := tree.Condition(installPlan, "Installed")
		return installPlan, because(name(installPlan)+" Failed "+c.Reason, cmp.Or(c.Message, field(installPlan, "status", "message"))), nil
	}
	return installPlan, "", nil
}

// awaitPlans adds a step that waits until no InstallPlan of a namespace installs, if one does: OLM
// would create again what the next steps delete. OLM may repeat a plan whose operators run already.
func (p *planner) awaitPlans(ctx context.Context, namespace string) error {
	busy, err := p.installing(ctx, namespace)
	if err != nil || busy == "" {
		return err
	}
	p.add("Wait until OLM installs nothing in namespace "+namespace, "", func(ctx context.Context, say func(string)) error {
		return p.await(ctx, say, func(ctx context.Context) (bool, string, error) {
			busy, err := p.installing(ctx, namespace)
			return busy == "" && err == nil, busy, err
		})
	})
	return nil
}

// quiet is the time in which OLM finishes an InstallPlan that it had begun before the objects were
// deleted.
const quiet = 10 * time.Second

// deleteRepeated adds a step that deletes the Subscriptions and ClusterServiceVersions that OLM
// creates again, until it has created none for a while: it may have begun to resolve or install
// before the steps so far.
func (p *planner) deleteRepeated(namespaces []string) {
	if len(namespaces) == 0 {
		return
	}
	p.add("Delete what OLM creates again", "", func(ctx context.Context, say func(string)) error {
		last := time.Now()
		return p.await(ctx, say, func(ctx context.Context) (bool, string, error) {
			state := "OLM has created nothing again"
			again, err := p.packages(ctx, namespaces...)
			for _, o := range again {
				last, state = time.Now(), name(o)+" is being deleted"
				if o.GetDeletionTimestamp() == nil {
					state = "OLM created " + name(o) + " again"
					err = errors.Join(err, client.IgnoreNotFound(p.cluster.Delete(ctx, o)))
				}
			}
			return err == nil && time.Since(last) >= quiet, state, err
		})
	})
}

// packages returns the Subscriptions and ClusterServiceVersions of namespaces, without the copies
// of others.
func (p *planner) packages(ctx context.Context, namespaces ...string) (all []*unstructured.Unstructured, err error) {
	for _, namespace := range namespaces {
		for _, kind := range []schema.GroupVersionKind{subscriptionKind, versionKind} {
			found, err := p.list(ctx, kind, namespace)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
	}
	return slices.DeleteFunc(all, func(o *unstructured.Unstructured) bool { return o.GetLabels()["olm.copiedFrom"] != "" }), nil
}

// installing returns an InstallPlan that installs, with its phase; "" if none does.
func (p *planner) installing(ctx context.Context, namespace string) (string, error) {
	plans, err := p.list(ctx, planKind, namespace)
	for _, o := range plans {
		if phase := field(o, "status", "phase"); !slices.Contains([]string{"Complete", failed, "RequiresApproval"}, phase) {
			return name(o) + " is " + cmp.Or(phase, "new"), err
		}
	}
	return "", err
}

// versionsState returns why a ClusterServiceVersion of the Subscriptions and of the
// InstallPlan does not run, "" if all run.
func (p *planner) versionsState(ctx context.Context, namespace string, subscriptions []*unstructured.Unstructured, installPlan *unstructured.Unstructured) (string, error) {
	wanted := map[string]bool{}
	for _, o := range subscriptions {
		if current := field(o, "status", "currentCSV"); current != "" {
			wanted[current] = true
		}
	}
	if installPlan != nil {
		planned, _, _ := unstructured.NestedStringSlice(installPlan.Object, "spec", "clusterServiceVersionNames")
		for _, version := range planned {
			wanted[version] = true
		}
	}
	versions, err := p.list(ctx, versionKind, namespace)
	if err != nil {
		return "", err
	}
	ready, waiting := 0, (*unstructured.Unstructured)(nil)
	for _, o := range versions {
		switch phase := field(o, "status", "phase"); {
		case !wanted[o.GetName()]:
		case phase == "Succeeded":
			ready++
		case waiting == nil || phase == failed:
			waiting = o
		}
	}
	switch {
	case waiting != nil:
		return p.versionState(ctx, waiting, ready, len(wanted))
	case ready < len(wanted):
		return fmt.Sprintf("%d of %d operators run; OLM is creating the others", ready, len(wanted)), nil
	}
	return "", nil
}

// versionState explains a ClusterServiceVersion: by the pod that does not start, or else as
// OLM does.
func (p *planner) versionState(ctx context.Context, o *unstructured.Unstructured, ready, all int) (string, error) {
	state := fmt.Sprintf("%d of %d operators run; %s %s %s", ready, all, name(o), cmp.Or(field(o, "status", "phase"), "is new"), field(o, "status", "reason"))
	line := field(o, "status", "message")
	if field(o, "status", "phase") == "Installing" || field(o, "status", "phase") == failed {
		blocked, err := p.blockedBy(ctx, o)
		if err != nil {
			return "", err
		}
		line = cmp.Or(blocked, line)
	}
	return because(state, line), nil
}

// blockedBy returns the cause of a Deployment of a ClusterServiceVersion that is not available.
func (p *planner) blockedBy(ctx context.Context, version *unstructured.Unstructured) (string, error) {
	objects, _, err := p.cluster.Objects(ctx, version.GetNamespace(), cluster.Deployment, cluster.ReplicaSet, cluster.Pod)
	if err != nil {
		return "", err
	}
	forest := tree.New(objects)
	for _, o := range objects {
		for _, owner := range o.GetOwnerReferences() {
			if owner.UID == version.GetUID() {
				if cause := forest.CauseOf(o); cause != nil {
					return cause.String(), nil
				}
			}
		}
	}
	return "", nil
}
