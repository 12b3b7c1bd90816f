package observe

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// secretReader returns a Secret of 1 MiB for every name, and counts the reads.
type secretReader struct {
	client.Reader
	reads int
}

func (r *secretReader) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	r.reads++
	secret := into.(*corev1.Secret) //nolint:forcetypeassert // the test reads Secrets alone
	secret.UID, secret.ResourceVersion = types.UID(key.Name), "1"
	secret.Data = map[string][]byte{"x": bytes.Repeat([]byte(key.Name[:1]), 1<<20)}
	return nil
}

// TestKeptDataAreBounded: an editor of a namespace may refer to any number of Secrets.
func TestKeptDataAreBounded(t *testing.T) {
	g := NewWithT(t)
	api := &secretReader{}
	c := cluster(t, nil, api)
	data := func(name string) map[string][]byte {
		key := Key{Kind: SecretKind, NamespacedName: types.NamespacedName{Namespace: "n", Name: name}}
		data, err := c.Data(t.Context(), key, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: types.UID(name), ResourceVersion: "1"}})
		g.Expect(err).NotTo(HaveOccurred())
		return data
	}
	data("few")
	data("few")
	g.Expect(api.reads).To(Equal(1), "what fits is kept")
	for i := range 600 {
		name := fmt.Sprint(i)
		g.Expect(data(name)).To(HaveKeyWithValue("x", HaveLen(1<<20)))
		before := api.reads
		data(name)
		g.Expect(api.reads).To(Equal(before), "the newest is kept")
	}
	var held int
	for _, known := range c.contents {
		held += SizeOf(known.data)
	}
	g.Expect(held).To(And(BeNumerically("<=", maxContents), Equal(c.kept)))
	for key := range c.contents {
		c.forgetContent(key)
	}
	g.Expect(c.kept).To(BeZero())
}

// TestDataThatNobodyReadsAreNotCounted: a resource refers to another Secret, or is deleted.
func TestDataThatNobodyReadsAreNotCounted(t *testing.T) {
	g := NewWithT(t)
	c := cluster(t, nil, &secretReader{})
	request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "n", Name: "reader"}}
	key := Key{Kind: SecretKind, NamespacedName: types.NamespacedName{Namespace: "n", Name: "read"}}
	v := c.View(request, "reader")
	v.dependOn(key)
	_, err := c.Data(t.Context(), key, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "read", ResourceVersion: "1"}})
	g.Expect(err).NotTo(HaveOccurred())
	v.Close()
	g.Expect(c.kept).To(BeNumerically(">", 1<<20))
	c.View(request, "reader").Close()
	g.Expect(c.kept).To(BeZero())
}
