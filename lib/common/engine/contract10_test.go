package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"
	"asterism.dev/lib/common/internal/widget"
)

func TestContract10Isolation(t *testing.T) {
	contract{check: contract10, mutants: map[string]mutant{
		"works on one object at a time": {
			seam:   func(s *engine.Seam) { s.Workers = 1 },
			caught: `no call that hangs delays others`,
			hangs:  true,
		},
		"waits for a forbidden watch on every pass": {
			seam:   func(s *engine.Seam) { s.ReadTimeout = time.Hour },
			caught: `Job cannot be watched`,
			hangs:  true,
		},
	}}.test(t)
}

func contract10(w *world) {
	w.hangingCall()
	w.forbiddenKind()
}

// hangingCall checks that a call that hangs delays only its own object, and that a panic, an
// error and a stop delay no other object.
func (w *world) hangingCall() {
	w.t.Helper()
	called, released := make(chan struct{}, 1), make(chan struct{})
	release := sync.OnceFunc(func() { close(released) })
	defer release()
	start(w, service{
		Name: owner,
		Stages: []stage{
			{Condition: "Registered", Do: func(_ context.Context, cr *widget.Widget, _ engine.Inputs) (engine.Observed, error) {
				switch cr.Spec.Text {
				case "panics":
					panic("no server") //nolint:forbidigo // as a bug would
				case "fails":
					return nil, fmt.Errorf("no route to host")
				case "stops":
					return nil, engine.Stop("Denied", "wrong password")
				case "hangs": // and ignores its deadline
					called <- struct{}{}
					<-released
				}
				return nil, nil
			}},
			configMaps("ConfigReady"),
		},
	})
	for name, expected := range map[string]string{
		"panics": "False Panic: stage Registered panicked: no server", "fails": "False Error: no route to host", "stops": "False Denied: wrong password",
	} {
		cr := w.widget(name, widget.Spec{Text: name})
		w.Eventually(w.condition(cr, "Registered")).Should(Equal(expected))
	}
	hangs := w.widget("hangs", widget.Spec{Text: "hangs"})
	<-called
	var others []*widget.Widget
	for i := range 20 {
		others = append(others, w.widget(fmt.Sprintf("other-%d", i), widget.Spec{Text: "fine"}))
	}
	for _, other := range others {
		w.happens("no call that hangs delays others", w.condition(other, "Ready"), HavePrefix("True"))
	}
	w.must(w.get(hangs))
	w.Expect(hangs.Status.Conditions).To(BeEmpty(), "the call still hangs")
	release()
	w.awaitReady(hangs)
	w.operator.Stop()
}

// forbiddenKind checks that a missing right fails only one stage, with the name of the kind,
// and that the stage continues when the right is granted.
func (w *world) forbiddenKind() {
	w.t.Helper()
	name := w.namespace + "-limited"
	role := &rbacv1.Role{ObjectMeta: metaOf(w.namespace, name), Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{widget.GroupVersion.Group}, Resources: []string{"widgets", "widgets/status", "widgets/finalizers"}, Verbs: []string{"get", "list", "watch", "patch", "update"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps", "services"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
	}}
	w.create(role)
	w.create(&rbacv1.RoleBinding{
		ObjectMeta: metaOf(w.namespace, name),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}},
	})
	w.mutant.options = []enginetest.Option{func(config *rest.Config, _ *ctrl.Options) { config.Impersonate.UserName = name }}
	start(w, service{Name: owner, Stages: []stage{
		configMaps("ConfigReady"),
		build("SchemaReady", func(cr *widget.Widget, _ engine.Inputs) []engine.Child {
			switch cr.Spec.Text {
			case "job":
				return []engine.Child{job(cr, cr.Name)}
			case "service": // of a kind that is watched after the forbidden kind
				return []engine.Child{serviceOf(cr)}
			}
			return nil
		}),
	}}, func(s *engine.Seam) { s.ReadTimeout = time.Second })
	forbidden := w.widget("forbidden", widget.Spec{Text: "job"})
	for i := range 20 {
		w.widget(fmt.Sprintf("another-%d", i), widget.Spec{Text: "job"})
	}
	w.happens("a kind that is forbidden is reported", w.condition(forbidden, "SchemaReady"), Equal("False Error: Job cannot be watched: check that the operator has the rights to list and watch this kind"))
	allowed := w.widget("allowed", widget.Spec{Text: "no job"})
	w.awaitReady(allowed)
	w.awaitReady(w.widget("later", widget.Spec{Text: "service"}))
	before := role.DeepCopy()
	role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}})
	w.must(w.client.Patch(w.ctx, role, client.MergeFrom(before)))
	w.Eventually(w.condition(forbidden, "SchemaReady")).Should(HavePrefix("False Progressing: Job forbidden is not complete"))
	w.operator.Stop()
}
