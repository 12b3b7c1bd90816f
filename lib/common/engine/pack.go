package engine

import (
	"fmt"

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
	metav1.ObjectMeta   // without labels and annotations
	labels, annotations []string
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
	p := &packed{ObjectMeta: *meta, labels: listed(meta.Labels), annotations: listed(meta.Annotations), empty: empty}
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

func (p *packed) GetLabels() map[string]string { return mapped(p.labels) }

func (p *packed) GetAnnotations() map[string]string { return mapped(p.annotations) }

// listed has the names and values of a map in turns, as words that are shared.
func listed(words map[string]string) []string {
	list := make([]string, 0, 2*len(words))
	for name, value := range words {
		list = append(list, same(name), same(value))
	}
	return list
}

func mapped(list []string) map[string]string {
	if len(list) == 0 {
		return nil
	}
	words := make(map[string]string, len(list)/2)
	for i := 0; i < len(list); i += 2 {
		words[list[i]] = list[i+1]
	}
	return words
}
