package enginetest

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"

	"asterism.dev/lib/common/config"
)

// checkGuesses looks for texts that everybody may read with Kubernetes' role view, and that
// depend on a password, but not on the key of the hashes: with such a text, and without the
// password, a program finds out which guess of the password is right.
func (s Subject[T]) checkGuesses(t testing.TB, all *problems, f fixture[T], recorded *recording[T]) {
	t.Helper()
	guessed, keyed := f, f
	guessed.objects, keyed.hashKey = withOtherPasswords(f.objects), "another key"
	public := recorded.public(t)
	changed := public.Difference(s.record(t, guessed, nil).public(t))
	for _, text := range sets.List(changed.Intersection(s.record(t, keyed, nil).public(t))) {
		all.add("%s depends on a password and not on the key: use Inputs.Hash, in a namespaced kind that owns Secrets", text)
	}
}

// withOtherPasswords returns the objects with other passwords in connection Secrets. Passwords
// that an operator generates have other keys, and cannot be guessed.
func withOtherPasswords(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	changed := slices.Clone(objects)
	for i, object := range objects {
		if object.GetKind() != secretKind {
			continue
		}
		changed[i] = object.DeepCopy()
		for _, key := range []string{config.KeyPassword, config.KeyCredentialSecret, config.KeySharedSecret} {
			if value, found, _ := unstructured.NestedString(object.Object, "data", key); found {
				decoded, _ := base64.StdEncoding.DecodeString(value)
				value = base64.StdEncoding.EncodeToString(append(decoded, "-guess"...))
				_ = unstructured.SetNestedField(changed[i].Object, value, "data", key)
			}
			if value, found, _ := unstructured.NestedString(object.Object, "stringData", key); found {
				_ = unstructured.SetNestedField(changed[i].Object, value+"-guess", "stringData", key)
			}
		}
	}
	return changed
}

// public returns all texts in the object and in its children other than Secrets, with their
// places.
func (r *recording[T]) public(t testing.TB) sets.Set[string] {
	t.Helper()
	texts := sets.New[string]()
	cr, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r.cr)
	if err != nil {
		t.Fatal(err)
	}
	addTexts(texts, "", cr)
	for _, child := range r.applied {
		if child.GetKind() != secretKind {
			addTexts(texts, child.GetKind(), child.Object)
		}
	}
	return texts
}

func addTexts(texts sets.Set[string], at string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			addTexts(texts, at+"."+name, field)
		}
	case []any:
		for _, element := range value {
			addTexts(texts, at+"[]", element)
		}
	default:
		// A text may join a hash that has the key to one that has not.
		for _, part := range strings.FieldsFunc(fmt.Sprint(value), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			texts.Insert(at + " " + part)
		}
	}
}
