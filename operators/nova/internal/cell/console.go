package cell

import (
	"strconv"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/engine"

	novncproxyv1 "asterism.dev/operators/nova-novncproxy/api/v1alpha1"
	novav1 "asterism.dev/operators/nova/api/v1alpha1"
)

func consoleNamed(cr *novav1.NovaCell) *novncproxyv1.NovaNoVNCProxy {
	return &novncproxyv1.NovaNoVNCProxy{ObjectMeta: named(cr.Name + "-novncproxy")}
}

func consoleNeeds(cr *novav1.NovaCell) []engine.Need {
	return []engine.Need{engine.Existing(consoleNamed(cr)).Optional()}
}

// console builds the NovaNoVNCProxy of the cell, or deletes it.
func console(cr *novav1.NovaCell, in engine.Inputs) ([]engine.Child, error) {
	child, settings := consoleNamed(cr), cr.Spec.NoVNCProxy
	if settings == nil {
		return []engine.Child{engine.Absent(child)}, nil
	}
	ofDatabase, ofMessageBus, err := secrets(cr, in)
	if err != nil {
		return nil, err
	}
	child.Spec = novncproxyv1.NovaNoVNCProxySpec{
		ServiceSpec:         settings.Spec("", commonv1.ServiceDefaults{}),
		ConsoleAddress:      settings.ConsoleAddress,
		DatabaseSecretRef:   commonv1.SecretReference{Name: ofDatabase},
		MessageBusSecretRef: commonv1.SecretReference{Name: ofMessageBus},
	}
	if running, exists := engine.Get[*novncproxyv1.NovaNoVNCProxy](in, child.Name); exists {
		if err := keepsImage(cr, in, child, running.Spec.ContainerImage, child.Spec.ContainerImage); err != nil {
			return nil, err
		}
	}
	return []engine.Child{child}, nil
}

// consoleURL returns the page of the cell's consoles, "" for a cell without a proxy, and until
// the address of the proxy is known.
func consoleURL(cr *novav1.NovaCell, in engine.Inputs) string {
	proxy, exists := engine.Get[*novncproxyv1.NovaNoVNCProxy](in, consoleNamed(cr).Name)
	if cr.Spec.NoVNCProxy == nil || !exists {
		return ""
	}
	return commonv1.URLOf(proxy.Status.Endpoints, commonv1.InterfacePublic)
}

// showScreens turns the screens of servers on if there is a page for them: by default, Nova
// gives users the URL of a page on their own machine. Computes do not wait for the page. They
// start without screens, and restart when its URL changes the Secret. The addresses of a
// screen differ by host, and are not in the Secret.
func showScreens(sections *config.Sections, url string) {
	const section = "vnc"
	sections.Set(section, "enabled", strconv.FormatBool(url != ""))
	if url != "" {
		sections.Set(section, "novncproxy_base_url", url)
	}
}
