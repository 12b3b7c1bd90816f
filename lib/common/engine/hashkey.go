package engine

import (
	"context"
	"crypto/rand"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"asterism.dev/lib/common/engine/internal/apply"
	"asterism.dev/lib/common/engine/internal/observe"
)

// HashKeySecret is the Secret with the key of Inputs.Hash, one in each namespace.
const HashKeySecret = "asterism-hash-key"

// HashKeyField is the key in HashKeySecret, whose value has hashKeySize random bytes.
const (
	HashKeyField = "key"
	hashKeySize  = 32
)

// readHashKey reads the key of Inputs.Hash. The first operator that needs the key creates it; it
// belongs to no object, because every object of the namespace uses it. Hashes of a kind that is
// cluster-scoped or owns no Secrets have no key: Conform reports a password in them.
func (p *pass) readHashKey(ctx context.Context) (err error) {
	defer p.guard(ctx, "reading the key of hashes", &err)
	if p.cr.GetNamespace() == "" || !slices.Contains(p.settings.Owns, observe.SecretKind) {
		return nil
	}
	p.in.hashKey = p.fallbackHashKey
	key := observe.Key{Kind: observe.SecretKind, NamespacedName: types.NamespacedName{Namespace: p.cr.GetNamespace(), Name: HashKeySecret}}
	current, err := p.view.Get(ctx, key)
	if err != nil {
		return err
	}
	if current == nil && p.cr.GetDeletionTimestamp() != nil {
		return nil // the namespace may be deleted too, and refuse the Secret
	}
	if current == nil {
		if current, err = p.createHashKey(ctx, key); err != nil {
			return err
		}
	}
	data, err := p.view.Data(ctx, key, current)
	if err != nil {
		return err
	}
	if data == nil {
		return waitFor(time.Second, "%s was deleted", key)
	}
	if len(data[HashKeyField]) < hashKeySize {
		return Wait("%s has fewer than %d bytes in key %s: delete the Secret, and the operator creates it again", key, hashKeySize, HashKeyField)
	}
	p.in.hashKey = data[HashKeyField]
	return nil
}

// createHashKey creates the Secret unless another operator does at the same time. It then returns
// an object without a UID: this fits no content in memory, so that View.Data reads the API server.
func (p *pass) createHashKey(ctx context.Context, key observe.Key) (client.Object, error) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name,
			Labels:      map[string]string{"app.kubernetes.io/managed-by": "asterism"},
			Annotations: map[string]string{"kubernetes.io/description": "Key of the hashes in the status of this namespace's resources. If it is deleted, the services restart."},
		},
		Immutable: new(true),
		Data:      map[string][]byte{HashKeyField: newHashKey()},
	}
	err := p.client().Create(ctx, secret, client.FieldOwner(p.settings.Name))
	switch {
	case errors.IsAlreadyExists(err):
		return &corev1.Secret{}, nil
	case err != nil:
		return nil, apply.OutcomeOfWrite(key, err)
	}
	p.view.NoteWrite(key, secret)
	return secret, nil
}

func newHashKey() []byte {
	key := make([]byte, hashKeySize)
	_, _ = rand.Read(key) // never fails
	return key
}
