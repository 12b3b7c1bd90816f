package engine

import (
	"bytes"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Trim is for the manager's cache: it takes from an object what the engine never
// looks at, which is what its managedFields say of others. What was applied stays,
// see unchanged.
func Trim(cached any) (any, error) {
	obj, ok := cached.(metav1.Object)
	if !ok || len(obj.GetManagedFields()) == 0 {
		return cached, nil
	}
	var applied []metav1.ManagedFieldsEntry
	for _, entry := range obj.GetManagedFields() {
		if entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" && entry.FieldsV1 != nil {
			entry.FieldsV1.SetRawBytes(alike.one(entry.FieldsV1.GetRawBytes()))
			applied = append(applied, entry)
		}
	}
	obj.SetManagedFields(applied)
	return cached, nil
}

// alike are the lists of fields that many objects have in common.
var alike = &shared{known: map[string][]byte{}}

const (
	maxShared = 1000
	// ownersKey begins the name of an owner in a list, which no two objects share.
	ownersKey = `k:{"uid"`
)

// shared keeps one copy of what is equal.
type shared struct {
	mu    sync.Mutex
	known map[string][]byte
}

func (s *shared) one(raw []byte) []byte {
	if bytes.Contains(raw, []byte(ownersKey)) {
		return raw
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.known[string(raw)]; ok {
		return known
	}
	if len(s.known) < maxShared {
		s.known[string(raw)] = raw
	}
	return raw
}
