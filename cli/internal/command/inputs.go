package command

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"asterism.dev/lib/common/config"

	metav1alpha1 "asterism.dev/operators/meta/api/v1alpha1"
)

const keysPage = "docs/services.md has the keys"

// readers read Secrets as the operators do, by the end of the path of a reference. The first that
// fits reads. Their errors name keys and no values.
var readers = []struct {
	end  string
	read func(map[string][]byte) error
}{
	{"identity.adminSecretRef", keystoneAdministrator},
	{"adminSecretRef", reader(config.ParseAdministrator)},
	{"identity.connectionSecretRef", reader(config.ParseIdentity)},
	{"accountSecretRef", reader(config.ParseIdentity)},
	{"ironic.secretRef", reader(config.ParseIdentity)},
	{"messageBus.connectionSecretRef", reader(config.ParseMessageBus)},
	{"notificationBusSecretRef", reader(config.ParseMessageBus)},
	{"connectionSecretRef", readDatabase},
	{"DatabaseSecretRef", readDatabase},
	{"metadataSecretRef", reader(config.ParseSharedSecret)},
	{"memcachedSecretRef", reader(config.ParseMemcached)},
	{"tlsSecretRef", pair},
}

func reader[T any](parse func(map[string][]byte) (T, error)) func(map[string][]byte) error {
	return func(data map[string][]byte) error {
		_, err := parse(data)
		return err
	}
}

func readDatabase(data map[string][]byte) error {
	_, err := config.ParseDatabase(data, "nova")
	return err
}

// keystoneAdministrator accepts username like every administrator's Secret.
func keystoneAdministrator(data map[string][]byte) error {
	admin, err := config.ParseAdministrator(data)
	if err != nil {
		return err
	}
	data = maps.Clone(data)
	data[config.KeyUser] = []byte(admin.User)
	return reader(config.ParseIdentity)(data)
}

func pair(data map[string][]byte) error {
	for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		if len(data[key]) == 0 {
			return config.KeyError{Key: key, Reason: "is missing"}
		}
	}
	return nil
}

func (r *readiness) planes(ctx context.Context) ([]metav1alpha1.ControlPlane, error) {
	var list metav1alpha1.ControlPlaneList
	err := r.list(ctx, "ControlPlanes", r.cluster.Namespace, &list)
	return list.Items, err
}

// inputs checks the Secrets and Services that the ControlPlanes of the namespace name.
func (r *readiness) inputs(ctx context.Context) error {
	planes, err := r.planes(ctx)
	if err != nil {
		return r.add("ControlPlanes", "", err)
	}
	for _, plane := range planes {
		spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&plane.Spec)
		if err != nil {
			return err
		}
		if err := r.references(ctx, "ControlPlane/"+plane.Name+" spec", spec); err != nil {
			return err
		}
	}
	return nil
}

// references checks the references to Secrets and Services in a part of a spec.
func (r *readiness) references(ctx context.Context, path string, part any) error {
	switch part := part.(type) {
	case []any:
		for i, entry := range part {
			if err := r.references(ctx, fmt.Sprintf("%s[%d]", path, i), entry); err != nil {
				return err
			}
		}
	case map[string]any:
		field, _, _ := strings.Cut(path[strings.LastIndex(path, ".")+1:], "[")
		name := fmt.Sprint(part["name"])
		switch lower := strings.ToLower(field); {
		case lower == "serviceref":
			return r.add("Service/"+name, path, r.service(ctx, path, name))
		case strings.Contains(lower, "secretref"), strings.Contains(lower, "secretkeyref"), lower == "imagepullsecrets":
			key, _ := part["key"].(string)
			return r.add("Secret/"+name, path, r.secret(ctx, path, name, key))
		}
		for _, name := range slices.Sorted(maps.Keys(part)) {
			if err := r.references(ctx, path+"."+name, part[name]); err != nil {
				return err
			}
		}
	}
	return nil
}

// secret checks the key, or else what the operators read from the Secret of the path.
func (r *readiness) secret(ctx context.Context, path, name, key string) error {
	secret := &corev1.Secret{}
	if err := r.get(ctx, "Secret", r.cluster.Namespace, name, "create it, or correct "+path+": "+keysPage, secret); err != nil {
		return err
	}
	if _, exists := secret.Data[key]; key != "" && !exists {
		return failed("%s: key %s is missing", path, key)
	}
	for _, r := range readers {
		if !strings.HasSuffix(path, r.end) {
			continue
		}
		if err := r.read(secret.Data); err != nil {
			return failed("%s: %v: %s", path, err, keysPage)
		}
		break
	}
	return nil
}

func (r *readiness) service(ctx context.Context, path, name string) error {
	service := &corev1.Service{}
	if err := r.get(ctx, "Service", r.cluster.Namespace, name, "create it, or correct "+path+", or name a server outside the namespace by host", service); err != nil {
		return err
	}
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return failed("%s: it is of type ExternalName: use host, or a Service with endpoints", path)
	}
	var list discoveryv1.EndpointSliceList
	if err := r.list(ctx, "EndpointSlices", r.cluster.Namespace, &list); err != nil {
		return err
	}
	for _, slice := range list.Items {
		if slice.Labels[discoveryv1.LabelServiceName] == name && slices.ContainsFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool {
			return e.Conditions.Ready == nil || *e.Conditions.Ready
		}) {
			return nil
		}
	}
	return failed("%s: it has no endpoint that is ready: look at its pods and its selector", path)
}
