// Command nova-novncproxy-operator runs the operator of NovaNoVNCProxy.
package main

import (
	"asterism.dev/lib/common/operator"

	novav1 "asterism.dev/operators/nova-novncproxy/api/v1alpha1"
	"asterism.dev/operators/nova-novncproxy/internal/novncproxy"
)

func main() {
	operator.Main("nova-novncproxy", novav1.AddToScheme, novncproxy.Service)
}
