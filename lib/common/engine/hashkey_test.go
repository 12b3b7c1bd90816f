package engine_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine"
	"asterism.dev/lib/common/internal/widget"
)

// hashes publishes a hash in a ConfigMap.
var hashes = service{Name: owner, Owns: owns, Stages: []stage{
	build("ConfigReady", func(cr *widget.Widget, in engine.Inputs) []engine.Child {
		return []engine.Child{configMap(cr.Name, in.Hash("p4ssw0rd"))}
	}),
}, Teardown: []stage{{Condition: "Unregistered"}}}

// TestHashesHaveTheKeyOfTheNamespace, which the first operator creates, and which every
// operator can read after it.
func TestHashesHaveTheKeyOfTheNamespace(t *testing.T) {
	w := newTestWorld(t)
	start(w, hashes)
	a, b := w.widget("a", widget.Spec{}), w.widget("b", widget.Spec{})
	w.awaitReady(a, b)
	key := w.hashKey()
	w.Expect(*key.Immutable).To(BeTrue())
	w.Expect(key.OwnerReferences).To(BeEmpty(), "all objects of the namespace use it")
	w.Expect(key.Data[engine.HashKeyField]).To(HaveLen(32))
	expected := keyed(key.Data[engine.HashKeyField])
	w.Expect(w.textOf(a.Name)()).To(Equal(expected))
	w.Expect(w.textOf(b.Name)()).To(Equal(expected))
}

// TestTwoOperatorsCreateOneHashKey: both use the key of the one that was first.
func TestTwoOperatorsCreateOneHashKey(t *testing.T) {
	w := newTestWorld(t)
	start(w, hashes, func(s *engine.Seam) { s.Client = secondCreator{s.Client, w} })
	cr := w.widget("second", widget.Spec{})
	w.awaitReady(cr)
	w.Expect(w.textOf(cr.Name)()).To(Equal(keyed(w.hashKey().Data[engine.HashKeyField])))
}

// secondCreator creates a Secret after another client has.
type secondCreator struct {
	client.Client
	w *world
}

func (c secondCreator) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	first := &corev1.Secret{ObjectMeta: metaOf(c.w.namespace, engine.HashKeySecret), Data: map[string][]byte{engine.HashKeyField: []byte("the other operator was the first")}}
	if err := client.IgnoreAlreadyExists(c.w.client.Create(ctx, first)); err != nil {
		return err
	}
	return c.Client.Create(ctx, obj, opts...)
}

// TestALostHashKeyIsReplaced, and everything that depends on it changes once.
func TestALostHashKeyIsReplaced(t *testing.T) {
	w := newTestWorld(t)
	start(w, hashes)
	cr := w.widget("lost", widget.Spec{})
	w.awaitReady(cr)
	key, hash := w.hashKey(), w.textOf(cr.Name)()
	w.must(w.client.Delete(w.ctx, key))
	w.Eventually(func() types.UID { return w.uid(w.secret(engine.HashKeySecret)) }).ShouldNot(BeElementOf(key.UID, types.UID("")))
	w.Eventually(w.textOf(cr.Name)).ShouldNot(Equal(hash))
	w.awaitReady(cr)
	changed := w.textOf(cr.Name)()
	w.pass(cr)
	w.Expect(w.textOf(cr.Name)()).To(Equal(changed), "one change")
}

// TestAShortHashKeyIsRefused: an editor of the namespace made it.
func TestAShortHashKeyIsRefused(t *testing.T) {
	w := newTestWorld(t)
	short := w.secret(engine.HashKeySecret)
	short.Data = map[string][]byte{engine.HashKeyField: []byte("short")}
	w.create(short)
	start(w, hashes)
	cr := w.widget("short", widget.Spec{})
	w.Eventually(w.condition(cr, "Ready")).Should(Equal("False Waiting: Secret asterism-hash-key has fewer than 32 bytes in key key: delete the Secret, and the operator creates it again"))
	w.Expect(w.gone(w.configMap(cr.Name))).To(BeTrue())
	w.must(w.client.Delete(w.ctx, short))
	w.awaitReady(cr)
}

// TestTheTeardownNeedsNoHashKey: with the namespace, the Secret may be deleted first. Then no hash
// is without a key.
func TestTheTeardownNeedsNoHashKey(t *testing.T) {
	w := newTestWorld(t)
	var hash atomic.Value
	s := hashes
	s.Teardown = []stage{{Condition: "Unregistered", Do: func(_ context.Context, _ *widget.Widget, in engine.Inputs) (engine.Observed, error) {
		hash.Store(in.Hash("p4ssw0rd"))
		return nil, nil
	}}}
	start(w, s)
	cr := w.widget("torn", widget.Spec{})
	w.awaitReady(cr)
	w.operator.Stop()
	w.must(w.client.Delete(w.ctx, w.hashKey()))
	w.must(w.client.Delete(w.ctx, cr))
	start(w, s)
	w.Eventually(func() bool { return w.gone(cr) }).Should(BeTrue())
	w.Expect(w.gone(w.secret(engine.HashKeySecret))).To(BeTrue(), "nothing needs it any more")
	w.Expect(hash.Load()).To(And(HaveLen(16), Not(Equal(keyed(nil)))))
}

// keyed returns the hash of the password with a key.
func keyed(key []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(`["p4ssw0rd"]`))
	return hex.EncodeToString(mac.Sum(nil)[:8])
}

// hashKey returns the Secret with the key.
func (w *world) hashKey() *corev1.Secret {
	w.t.Helper()
	key := w.secret(engine.HashKeySecret)
	w.must(w.get(key))
	return key
}
