package install

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/cli/cluster"
)

// installed is how the operators of a namespace are installed. The zero value means that the
// namespace has no operators.
type installed struct {
	way   string
	proof string // the object that tells the way
}

// look reads how the operators of both namespaces are installed.
func (p *planner) look(ctx context.Context) error {
	p.found = map[string]installed{}
	for _, namespace := range []string{systemNamespace, storageNamespace} {
		way, err := p.wayOf(ctx, namespace)
		if err != nil {
			return err
		}
		if way.way != "" {
			p.found[namespace] = way
		}
	}
	return nil
}

// wayOf finds an installation that has failed, too: OLM and Helm write their own object first.
func (p *planner) wayOf(ctx context.Context, namespace string) (installed, error) {
	subscriptions, err := p.list(ctx, subscriptionKind, namespace)
	if err != nil {
		return installed{}, err
	}
	if len(subscriptions) > 0 {
		return installed{OLM, name(subscriptions[0])}, nil
	}
	release, err := p.releaseOf(ctx, namespace)
	if err != nil || release != "" {
		return installed{Helm, "Helm release " + namespace + "/" + release}, err
	}
	deployments, err := p.list(ctx, cluster.Deployment, namespace)
	if err != nil {
		return installed{}, err
	}
	for _, o := range deployments {
		switch labels := o.GetLabels(); {
		case labels["app.kubernetes.io/part-of"] != "asterism":
		case labels["olm.owner"] != "":
			return installed{OLM, name(o)}, nil
		case labels["app.kubernetes.io/managed-by"] == "Helm": // which may keep its releases elsewhere
			return installed{Helm, name(o)}, nil
		default:
			return installed{Kubectl, name(o)}, nil
		}
	}
	return installed{}, nil
}

// releaseOf returns the name of a release of Helm in a namespace. It reads no values of Secrets.
func (p *planner) releaseOf(ctx context.Context, namespace string) (string, error) {
	var secrets metav1.PartialObjectMetadataList
	secrets.SetGroupVersionKind(secretKind)
	if err := p.cluster.WithWatch.List(ctx, &secrets, client.InNamespace(namespace), client.MatchingLabels{"owner": "helm"}); err != nil {
		return "", fmt.Errorf("%s cannot be read: %w", cluster.What(secretKind, namespace), err)
	}
	for _, secret := range secrets.Items {
		if secret.Labels["status"] != "uninstalled" { // helm uninstall --keep-history
			return secret.Labels["name"], nil
		}
	}
	return "", nil
}

// refuseOtherWay returns an error if one of the namespaces has operators that are installed in
// another way than --with says: two programs would change the same objects.
func (p *planner) refuseOtherWay(namespaces ...string) error {
	for _, namespace := range namespaces {
		if found := p.found[namespace]; p.hasOther(namespace) && !(found.way == Kubectl && p.TakeOwnership) {
			return fmt.Errorf("the cluster has %s, so the operators of namespace %s are installed with %s: use --with %s", found.proof, namespace, found.way, found.way)
		}
	}
	return nil
}

// refuseInstalled refuses an installation where another way has installed the operators. That of
// kubectl looks at the objects first.
func (p *planner) refuseInstalled() error {
	switch {
	case p.With == Kubectl:
		return nil
	case p.SharedVolume:
		return p.refuseOtherWay(systemNamespace, storageNamespace)
	}
	return p.refuseOtherWay(systemNamespace)
}

// refuseOnlyOtherWays returns an error if the cluster has operators, and none of them in the way of
// --with. An upgrade and a removal leave alone what is installed in another way.
func (p *planner) refuseOnlyOtherWays() error {
	if p.has(systemNamespace) || p.has(storageNamespace) {
		return nil
	}
	return p.refuseOtherWay(systemNamespace, storageNamespace)
}

// has tells whether a namespace has operators that are installed in the way of --with.
func (p *planner) has(namespace string) bool { return p.found[namespace].way == p.With }

// hasOther tells whether a namespace has operators that are installed in another way.
func (p *planner) hasOther(namespace string) bool {
	_, exists := p.found[namespace]
	return exists && !p.has(namespace)
}

// nothing tells whether the cluster has none of the operators.
func (p *planner) nothing() bool { return len(p.found) == 0 }

// refuseNothing returns an error if there is nothing to upgrade.
func (p *planner) refuseNothing() error {
	if !p.nothing() {
		return nil
	}
	install := Command{Args: slices.Concat([]string{kubectl, "asterism", "install", "--with", p.With}, p.Kubectl)}
	return fmt.Errorf("nothing is installed: %s installs the operators", install)
}
