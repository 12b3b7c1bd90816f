package workload

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
)

// toleration converts a field of the spec to its apply configuration, which has the same
// JSON.
func toleration(from corev1.Toleration) *applycorev1.TolerationApplyConfiguration {
	return convert(from, applycorev1.Toleration())
}

// affinity converts like toleration.
func affinity(from *corev1.Affinity) *applycorev1.AffinityApplyConfiguration {
	return convert(from, applycorev1.Affinity())
}

func convert[To any](from any, to *To) *To {
	data, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(data, to)
	}
	if err != nil {
		panic(fmt.Sprintf("%T does not convert to %T: %v", from, to, err)) //nolint:forbidigo // cannot happen: the two shapes are generated from one type
	}
	return to
}
