// Command nova-novncproxy-operator runs the operator of NovaNoVNCProxy.
package main

import (
	"k8s.io/apimachinery/pkg/runtime"

	"asterism.dev/lib/common/exposure"
	"asterism.dev/lib/common/operator"

	novav1 "asterism.dev/operators/nova-novncproxy/api/v1alpha1"
	"asterism.dev/operators/nova-novncproxy/internal/novncproxy"
)

func main() {
	scheme := runtime.NewSchemeBuilder(novav1.AddToScheme, exposure.AddToScheme)
	operator.Main("nova-novncproxy", scheme.AddToScheme, novncproxy.Service)
}
