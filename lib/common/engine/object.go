package engine

import (
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
)

// Object is a kind that the engine reconciles: its status embeds commonv1.Status.
type Object interface {
	client.Object
	// Common returns the part of the status that the engine writes.
	Common() *commonv1.Status
	// IsPaused tells whether spec.paused is true.
	IsPaused() bool
}

func newOf[O client.Object]() O {
	return reflect.New(reflect.TypeFor[O]().Elem()).Interface().(O) //nolint:forcetypeassert // the new object is of type O
}
