package install

import (
	"cmp"
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"asterism.dev/cli/cluster"
	"asterism.dev/cli/tree"
)

// interval is the pause between two looks of a wait.
const interval = time.Second

// await looks until it is done, or until the time of the options is over. look returns the
// object that is not ready, with the line that explains it. An error of look may pass: the API
// server may restart.
func (p *planner) await(ctx context.Context, say func(string), look func(context.Context) (done bool, state string, err error)) error {
	limited, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	for last := ""; ; {
		done, state, err := look(limited)
		switch {
		case done:
			return nil
		case err != nil && limited.Err() != nil:
			state = "" // the time is over, so the last state is true
		case err != nil:
			state = err.Error()
		}
		if last = cmp.Or(state, last); last != "" {
			say(last)
		}
		select {
		case <-limited.Done():
			if ctx.Err() != nil {
				return fmt.Errorf("interrupted: %s", cmp.Or(last, "no answer of the API server"))
			}
			return fmt.Errorf("not complete after %s: %s", p.Timeout, cmp.Or(last, "no answer of the API server"))
		case <-time.After(interval):
		}
	}
}

// awaitOperators adds a step that waits for the Deployments of a namespace.
func (p *planner) awaitOperators(namespace string) {
	p.add("Wait until every Deployment of namespace "+namespace+" is available", "", func(ctx context.Context, say func(string)) error {
		return p.await(ctx, say, func(ctx context.Context) (bool, string, error) {
			state, err := p.blocked(ctx, namespace)
			return state == "" && err == nil, state, err
		})
	})
}

// blocked returns the object because of which a Deployment of a namespace is not available,
// with the line that explains it; "" if all are available.
func (p *planner) blocked(ctx context.Context, namespace string) (string, error) {
	objects, unread, err := p.cluster.Objects(ctx, namespace, cluster.Deployment, cluster.ReplicaSet, cluster.Pod)
	if err != nil {
		return "", err
	}
	if len(unread) > 0 {
		return "", unread[0]
	}
	forest, found := tree.New(objects), false
	for _, o := range objects {
		if o.GroupVersionKind() != cluster.Deployment {
			continue
		}
		found = true
		if tree.StateOf(o).Ready != metav1.ConditionTrue {
			return forest.CauseOf(o).String(), nil
		}
		if replicas, set, _ := unstructured.NestedInt64(o.Object, "spec", "replicas"); set && replicas == 0 {
			return name(o) + " has 0 replicas: scale it to 1", nil
		}
	}
	if !found {
		return "namespace " + namespace + " has no Deployment", nil
	}
	return "", nil
}
