package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// packed is how the cache holds an object of a kind that comes by the ten thousand.
// It has what watches and lists look at; spec and status are encoded, and labels and
// annotations are words that many share, which takes half the room, and the garbage
// collector has nothing to look through. Whoever reads the cache gets a copy of what
// it holds: this one's copy is the object itself.
type packed struct {
	metav1.ObjectMeta             // without labels and annotations
	labels, annotations *[]string // their names
	values              []string  // of the labels, and then of the annotations
	content             []byte
	empty               func() packable
}

// packable are Kubernetes' own kinds, with their encoding as protobuf.
type packable interface {
	client.Object
	metav1.ObjectMetaAccessor
	Marshal() ([]byte, error)
	Unmarshal(content []byte) error
}

func emptyVolume() packable { return &corev1.PersistentVolume{} }

func emptyClaim() packable { return &corev1.PersistentVolumeClaim{} }

// pack an object, which is spent then.
func pack(obj packable, empty func() packable) (*packed, error) {
	meta, ok := obj.GetObjectMeta().(*metav1.ObjectMeta)
	if !ok {
		return nil, fmt.Errorf("packing a %T: it has no metadata", obj)
	}
	p := &packed{ObjectMeta: *meta, empty: empty, values: make([]string, 0, len(meta.Labels)+len(meta.Annotations))}
	p.labels, p.values = wordsOf(meta.Labels, p.values)
	p.annotations, p.values = wordsOf(meta.Annotations, p.values)
	p.Labels, p.Annotations = nil, nil
	*meta = metav1.ObjectMeta{}
	var err error
	p.content, err = obj.Marshal()
	return p, err
}

// DeepCopyObject returns the object that was packed.
func (p *packed) DeepCopyObject() runtime.Object {
	obj := p.empty()
	if err := obj.Unmarshal(p.content); err != nil {
		panic(fmt.Sprintf("unpacking %s: %v", p.Name, err)) //nolint:forbidigo // it is what Marshal has made
	}
	if meta, ok := obj.GetObjectMeta().(*metav1.ObjectMeta); ok {
		p.DeepCopyInto(meta)
		meta.Labels, meta.Annotations = p.GetLabels(), p.GetAnnotations()
	}
	return obj
}

func (p *packed) GetObjectKind() schema.ObjectKind { return p.empty().GetObjectKind() }

func (p *packed) GetObjectMeta() metav1.Object { return p }

func (p *packed) GetLabels() map[string]string { return mapOf(*p.labels, p.values) }

func (p *packed) GetAnnotations() map[string]string {
	return mapOf(*p.annotations, p.values[len(*p.labels):])
}

// wordsOf are the names and values of a map in less room: objects of one kind have the
// same names, and share them. The values are appended to those that are given.
func wordsOf(from map[string]string, values []string) (names *[]string, all []string) {
	sorted := slices.Sorted(maps.Keys(from))
	for i, name := range sorted {
		sorted[i] = same(name)
		values = append(values, same(from[name]))
	}
	return sharedAs(alike, "names "+strings.Join(sorted, " "), &sorted), values
}

func mapOf(names, values []string) map[string]string {
	if len(names) == 0 {
		return nil
	}
	all := make(map[string]string, len(names))
	for i, name := range names {
		all[name] = values[i]
	}
	return all
}

// interned is the map with words that many share.
func interned(from map[string]string) map[string]string {
	names, values := wordsOf(from, nil)
	return mapOf(*names, values)
}
