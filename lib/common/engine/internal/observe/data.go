package observe

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kinds of which only metadata are watched. Their data are read by name.
var (
	SecretKind    = corev1.SchemeGroupVersion.WithKind("Secret")
	ConfigMapKind = corev1.SchemeGroupVersion.WithKind("ConfigMap")
)

// IsDataKind tells whether only the metadata of a kind are watched.
func IsDataKind(kind schema.GroupVersionKind) bool {
	return kind == SecretKind || kind == ConfigMapKind
}

// maxContents bounds the data that a controller keeps, in bytes: whoever edits a namespace can refer
// to any number of Secrets of 1 MiB. What does not fit is read in each pass.
const maxContents = 8 << 20

// content is the data of one version of a Secret or ConfigMap.
type content struct {
	uid     types.UID
	version string
	data    map[string][]byte // nil: dropped for maxContents
	size    int               // of the data, in bytes
	expiry  time.Time         // of the certificates, see expiryOf
}

// Data returns the data of a Secret or ConfigMap, which are read once for each version, within
// maxContents; current is its metadata. The data are nil if the object no longer exists.
func (c *Cluster) Data(ctx context.Context, key Key, current client.Object) (map[string][]byte, error) {
	c.mu.Lock()
	known, ok := c.contents[key]
	c.mu.Unlock()
	if ok && known.data != nil && known.uid == current.GetUID() && !isOlder(known.version, current.GetResourceVersion()) {
		return known.data, nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.ReadTimeout)
	defer cancel()
	fresh, err := c.readData(ctx, key)
	if errors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", key, err)
	}
	fresh.expiry, fresh.size = expiryOf(fresh.data), SizeOf(fresh.data)
	c.keep(key, fresh)
	return fresh.data, nil
}

// SizeOf returns the bytes of data.
func SizeOf(data map[string][]byte) (size int) {
	for name, value := range data {
		size += len(name) + len(value)
	}
	return size
}

// keep keeps a content, and drops the data of others while all do not fit.
func (c *Cluster) keep(key Key, fresh content) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept += fresh.size - c.contents[key].size
	c.contents[key] = fresh
	for other, known := range c.contents { // in random order
		if c.kept <= maxContents {
			return
		}
		if other != key {
			c.kept -= known.size
			known.data, known.size = nil, 0
			c.contents[other] = known
		}
	}
}

// Expiry returns when the certificates in the data that Data has read expire; zero without any.
func (c *Cluster) Expiry(key Key) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.contents[key].expiry
}

func (c *Cluster) readData(ctx context.Context, key Key) (content, error) {
	data := map[string][]byte{} // nil means that the object does not exist
	if key.Kind == SecretKind {
		var secret corev1.Secret
		err := c.API.Get(ctx, key.NamespacedName, &secret)
		maps.Copy(data, secret.Data)
		return content{uid: secret.UID, version: secret.ResourceVersion, data: data}, err
	}
	var configMap corev1.ConfigMap
	err := c.API.Get(ctx, key.NamespacedName, &configMap)
	for name, text := range configMap.Data {
		data[name] = []byte(text)
	}
	maps.Copy(data, configMap.BinaryData)
	return content{uid: configMap.UID, version: configMap.ResourceVersion, data: data}, err
}

// forgetContent removes the data of a deleted Secret or ConfigMap.
func (c *Cluster) forgetContent(key Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropContent(key)
}

// dropContent requires the lock.
func (c *Cluster) dropContent(key Key) {
	c.kept -= c.contents[key].size
	delete(c.contents, key)
}
