package engine_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/enginetest"
	"asterism.dev/lib/common/internal/widget"
)

func TestContract06SecretsAsMetadata(t *testing.T) {
	contract{check: contract06, mutants: map[string]mutant{
		"caches whole Secrets": {
			seam:   func(s *engine.Seam) { s.Cached = wholeSecrets{s.Cached} },
			caught: `only metadata is watched`,
		},
		"reads its own writes": {
			options: []enginetest.Option{func(_ *rest.Config, options *ctrl.Options) {
				options.Client.Cache = &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}
			}},
			caught: `only metadata is watched`,
		},
		"keeps the first content that it read": {
			seam: func(s *engine.Seam) {
				s.Cached = changingReader{s.Cached, func(obj client.Object) {
					if obj.GetName() == "needed" {
						obj.SetResourceVersion("1")
					}
				}}
			},
			caught: `content of the Secret`,
		},
	}}.test(t)
}

func contract06(w *world) {
	w.needed()
	start(w, service{
		Name: owner,
		Stages: []stage{{
			Condition: "ConfigReady",
			Needs: func(*widget.Widget) []engine.Need {
				return []engine.Need{engine.Secret("needed", "password"), engine.ConfigMap("optional").Optional()}
			},
			Build: func(cr *widget.Widget, in engine.Inputs) ([]engine.Child, error) {
				return []engine.Child{
					secret(cr.Name).WithData(map[string][]byte{"copy": in.Secret("needed")["password"]}),
					configMap(cr.Name, string(in.ConfigMap("optional")["text"])),
				}, nil
			},
		}},
		Owns: owns,
	})
	cr := w.widget("secrets", widget.Spec{})
	w.awaitReady(cr)
	w.pass(cr)
	for i := range 20 {
		foreign := w.secret(fmt.Sprintf("foreign-%d", i))
		w.create(foreign)
	}
	w.copied(cr, "p4ssw0rd")
	w.Expect(w.readsOf("secrets", "needed")).To(HaveLen(1), "one read of one version")

	needed := w.secret("needed")
	w.must(w.get(needed))
	needed.Data["password"] = []byte("changed")
	w.must(w.client.Update(w.ctx, needed))
	w.copied(cr, "changed")
	optional := w.configMap("optional")
	optional.Data = map[string]string{"text": "created later"}
	w.create(optional)
	w.Eventually(func() map[string]string { c := w.configMap(cr.Name); _ = w.get(c); return c.Data }).Should(HaveKeyWithValue("text", "created later"))
	w.awaitReady(cr)
	w.pass(cr)
	w.Expect(w.readsOf("secrets", "needed")).To(HaveLen(2), "one read of each version")
	w.Expect(w.readsOf("configmaps", "optional")).To(HaveLen(1), "one read of one version")
	w.onlyMetadata()
}

// readsOf returns the operator's reads of one object.
func (w *world) readsOf(resource, name string) []enginetest.Request {
	return slices.DeleteFunc(w.operator.Requests.Of("get", resource), func(r enginetest.Request) bool { return r.Name != name })
}

// copied checks the content after a complete pass that has seen the newest version of the Secret.
func (w *world) copied(cr *widget.Widget, content string) {
	w.t.Helper()
	w.sees(w.secret("needed"))
	w.pass(cr)
	copied := w.secret(cr.Name)
	w.must(w.get(copied))
	w.Expect(string(copied.Data["copy"])).To(Equal(content), "content of the Secret")
	w.onlyMetadata()
}

// onlyMetadata checks that only metadata of Secrets and ConfigMaps are listed or watched.
func (w *world) onlyMetadata() {
	w.t.Helper()
	watched := map[string]bool{}
	for _, request := range w.operator.Requests.Reads() {
		if request.Resource != "secrets" && request.Resource != "configmaps" {
			continue
		}
		if request.Verb != "get" {
			watched[request.Resource] = true
			w.Expect(request.MetadataOnly()).To(BeTrue(), "only metadata is watched: %s, %s", request, request.Accept)
		}
		w.Expect(request.Name).NotTo(HavePrefix("foreign"))
	}
	w.Expect(watched).To(HaveLen(2), "both kinds are watched")
}

// wholeSecrets reads complete Secrets, so that the cache watches complete Secrets.
type wholeSecrets struct{ client.Reader }

func (r wholeSecrets) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	metadata, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok || metadata.Kind != "Secret" {
		return r.Reader.Get(ctx, key, obj, opts...)
	}
	var secret corev1.Secret
	if err := r.Reader.Get(ctx, key, &secret, opts...); err != nil {
		return err
	}
	metadata.ObjectMeta = secret.ObjectMeta
	return nil
}
