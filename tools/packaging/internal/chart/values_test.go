package chart_test

import (
	"encoding/base64"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const everyValue = `
image: {registry: quay.example/a, repository: b, digest: "sha256:0123456789012345678901234567890123456789012345678901234567890123", pullPolicy: Always}
imagePullSecrets: [{name: pull}]
replicas: 2
args: [--zap-log-level=debug]
env: {CLUSTER_DOMAIN: example.org, GOMEMLIMIT: 300MiB}
resources: {limits: {memory: 1Gi}}
nodeSelector: {node-role.kubernetes.io/infra: ""}
tolerations: [{key: infra, operator: Exists}]
affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {a: b}}}}]}}
priorityClassName: system-cluster-critical
podAnnotations: {example.org/a: "{{ not a template }}"}
watchNamespaces: [openstack]
networkPolicy: {apiServerPorts: [16443]}
global: {asterism: {imagePullSecrets: [{name: other}]}, another-chart: {}}
`

const everyValueDeployment = `
replicas: 2
template:
  metadata:
    annotations: {example.org/a: "{{ not a template }}"}
  spec:
    affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {a: b}}}}]}}
    imagePullSecrets: [{name: pull}, {name: other}]
    nodeSelector: {node-role.kubernetes.io/infra: ""}
    priorityClassName: system-cluster-critical
    tolerations: [{key: infra, operator: Exists}]
`

const everyValueContainer = `
args: [--zap-log-level=debug]
env:
- {name: POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
- {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
- {name: POD_SERVICE_ACCOUNT, valueFrom: {fieldRef: {fieldPath: spec.serviceAccountName}}}
- {name: CLUSTER_DOMAIN, value: example.org}
- {name: GOGC, value: "50"}
- {name: GOMEMLIMIT, value: 300MiB}
image: quay.example/a/b@sha256:0123456789012345678901234567890123456789012345678901234567890123
imagePullPolicy: Always
resources: {limits: {memory: 1Gi}, requests: {cpu: 10m, memory: 64Mi}}
`

// contains compares the fields that wanted has.
func contains(t *testing.T, path string, have, wanted any) {
	t.Helper()
	if fields, ok := wanted.(map[string]any); ok {
		below, _ := have.(map[string]any)
		for key, field := range fields {
			contains(t, path+"."+key, below[key], field)
		}
		return
	}
	if !reflect.DeepEqual(have, wanted) {
		t.Errorf("%s is %v, want %v", path, have, wanted)
	}
}

// parsed reads YAML as the objects of render are read.
func parsed(t *testing.T, content string) map[string]any {
	t.Helper()
	object := &unstructured.Unstructured{}
	encoded, err := yaml.YAMLToJSONStrict([]byte("apiVersion: v1\nkind: Test\n" + content))
	if err != nil {
		t.Fatal(err)
	}
	if err := object.UnmarshalJSON(encoded); err != nil {
		t.Fatal(err)
	}
	delete(object.Object, "apiVersion")
	delete(object.Object, "kind")
	return object.Object
}

func TestValuesReachTheObjects(t *testing.T) {
	objects, _ := render(t, "nova-operator", namespace, values(t, everyValue))
	deployment := objects["Deployment asterism-system/asterism-nova-operator"]
	contains(t, "spec", deployment.Object["spec"], parsed(t, everyValueDeployment))
	containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	contains(t, "container", containers[0], parsed(t, everyValueContainer))
	ports, _, _ := unstructured.NestedSlice(objects["NetworkPolicy asterism-system/asterism-nova-operator"].Object, "spec", "egress")
	contains(t, "egress", ports[1], parsed(t, "ports: [{port: 16443, protocol: TCP}]"))
	if objects["RoleBinding openstack/asterism-nova-operator"] == nil {
		t.Error("namespace openstack is not handed over")
	}
}

func TestValuesTurnObjectsOff(t *testing.T) {
	objects, _ := render(t, "shared-volume-operator", namespace, values(t, `{crds: {install: false}, networkPolicy: {enabled: false}, admissionPolicies: {enabled: false}}`))
	for name := range objects {
		for _, off := range []string{"CustomResourceDefinition", "NetworkPolicy", "ValidatingAdmissionPolicy"} {
			if strings.HasPrefix(name, off) {
				t.Errorf("%s is rendered", name)
			}
		}
	}
	if len(objects) == 0 {
		t.Error("nothing is rendered")
	}
}

func TestImages(t *testing.T) {
	for given, image := range map[string]string{
		"{}":                   "quay.io/asterism/shared-volume-operator:v" + project(t).Version,
		"image: {tag: latest}": "quay.io/asterism/shared-volume-operator:latest",
		"{image: {registry: quay.example/a}, global: {asterism: {registry: mirror.example/b}}}": "mirror.example/b/shared-volume-operator:v" + project(t).Version,
	} {
		objects, _ := render(t, "shared-volume-operator", namespace, values(t, given))
		containers, _, _ := unstructured.NestedSlice(objects["Deployment asterism-system/asterism-shared-volume-operator"].Object, "spec", "template", "spec", "containers")
		contains(t, given, containers[0], map[string]any{"image": image})
	}
}

func TestImagesOfOperands(t *testing.T) {
	objects, _ := render(t, "shared-volume-operator", namespace, values(t, `images: {efsCsiDriver: "mirror.example/driver:1", livenessProbe: ""}`))
	containers, _, _ := unstructured.NestedSlice(objects["Deployment asterism-system/asterism-shared-volume-operator"].Object, "spec", "template", "spec", "containers")
	have := map[string]any{}
	for _, variable := range containers[0].(map[string]any)["env"].([]any) {
		have[variable.(map[string]any)["name"].(string)] = variable.(map[string]any)["value"]
	}
	contains(t, "env", have, map[string]any{
		"RELATED_IMAGE_EFS_CSI_DRIVER": "mirror.example/driver:1", "WATCH_NAMESPACE": "",
		"RELATED_IMAGE_NODE_DRIVER_REGISTRAR": "registry.k8s.io/sig-storage/csi-node-driver-registrar:v2.17.0",
	})
	if _, found := have["RELATED_IMAGE_LIVENESS_PROBE"]; found {
		t.Error("an empty image does not stand for the operator's default")
	}
}

func TestValuesAreRefused(t *testing.T) {
	const nova = `spec: {containerImage: a, database: {serviceRef: {name: a}, adminSecretRef: {name: b}}, messageBus: {serviceRef: {name: a}, adminSecretRef: {name: b}}, identity: {adminSecretRef: {name: b}}`
	for _, c := range []struct{ chart, values, message string }{
		{"nova-operator", "replica: 2", "additional properties 'replica' not allowed"},
		{"nova-operator", "image: {digest: v1}", "does not match pattern"},
		{"nova-operator", "image: {pullPolicy: Sometimes}", "value must be one of 'Always', 'IfNotPresent', 'Never'"},
		{"nova-operator", "replicas: two", "got string, want integer"},
		{"nova-operator", "watchNamespaces: openstack", "value must be '*'"},
		{"nova-operator", "watchNamespaces: [Open Stack]", "does not match pattern"},
		{"nova-operator", "env: {WATCH_NAMESPACE: a}", "invalid propertyName 'WATCH_NAMESPACE'"},
		{"nova-operator", "tolerations: [{keys: a}]", "additional properties 'keys' not allowed"},
		{"nova-operator", "affinity: {nodeAffinitty: {}}", "additional properties 'nodeAffinitty' not allowed"},
		{"nova-operator", "resources: {limit: {}}", "additional properties 'limit' not allowed"},
		{"nova-operator", "global: {asterism: {watchNamespace: []}}", "additional properties 'watchNamespace' not allowed"},
		{"shared-volume-operator", "watchNamespaces: []", "additional properties 'watchNamespaces' not allowed"},
		{"shared-volume-operator", "images: {driver: a}", "additional properties 'driver' not allowed"},
		{"asterism", "nova-operators: {}", "additional properties 'nova-operators' not allowed"},
		{"asterism", "operators: {keystone: true}", "additional properties 'keystone' not allowed"},
		{"asterism", "nova-operator: {replica: 2}", "additional properties 'replica' not allowed"},
		{"nova", "{}", "missing properties 'cells', 'database', 'identity', 'messageBus'"},
		{"nova", nova + "}", "missing property 'cells'"},
		{"nova", nova + ", cells: [{name: cell1, conductors: {}}]}", "additional properties 'conductors' not allowed"},
		{"nova", nova + ", cells: [{name: cell1}], deletionPolicy: Keep}", "'/spec/deletionPolicy'"},
		{"nova", nova + ", cells: [{name: cell1}], api: {replicas: -1}}", "'/spec/api/replicas': minimum: got -1, want 0"},
		{"nova", nova + ", cells: [{name: cell1}]}\nsecrets: {a: {b: 1}}", "got number, want string"},
		{"shared-volume", "{spec: {fileSystemID: fs-1, accessPointID: fsap-1}, policies: {a: {namespaces: {}}}}", "missing property 'fileSystems'"},
	} {
		t.Run(c.chart+" "+c.values, func(t *testing.T) {
			_, err := tryRender(t, c.chart, namespace, values(t, c.values))
			if err == nil || !strings.Contains(err.Error(), c.message) {
				t.Errorf("got %v, want a message with %q", err, c.message)
			}
		})
	}
}

func TestExamplesRenderTheSamples(t *testing.T) {
	for _, name := range names(t) {
		if !isService(name) {
			continue
		}
		for example, given := range examples(t, name) {
			objects, notes := render(t, name, "openstack", given)
			secrets, _ := given["secrets"].(map[string]any)
			if len(objects) != 1+len(secrets) {
				t.Errorf("%s %s renders %d objects", name, example, len(objects))
			}
			for _, object := range objects {
				if object.GetNamespace() != "openstack" {
					t.Errorf("%s %s: %s is in another namespace", name, example, id(object))
				}
				wanted := given["spec"]
				if object.GetKind() == "Secret" {
					contains(t, id(object), decoded(t, object), secrets[object.GetName()])
				} else if content, _ := yaml.Marshal(object.Object["spec"]); !reflect.DeepEqual(values(t, string(content)), wanted) {
					t.Errorf("%s %s: the spec is\n%s\nwant\n%v", name, example, content, wanted)
				}
			}
			if !strings.Contains(notes, given["name"].(string)) {
				t.Errorf("the notes do not name the resource:\n%s", notes)
			}
		}
	}
}

// decoded returns the data of a Secret.
func decoded(t *testing.T, secret *unstructured.Unstructured) map[string]any {
	t.Helper()
	found := map[string]any{}
	data, _, err := unstructured.NestedStringMap(secret.Object, "data")
	if err != nil {
		t.Fatal(err)
	}
	for key, encoded := range data {
		text, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			t.Fatal(err)
		}
		found[key] = string(text)
	}
	return found
}

func TestNameOfTheReleaseIsTheDefault(t *testing.T) {
	objects, _ := render(t, "shared-volume", "team-a", values(t, `{annotations: {a: b}, spec: {fileSystemID: fs-484648c8, accessPointID: fsap-097bd0daaba932e64}, policies: {team-a: {namespaces: {names: [team-a]}, fileSystems: [{fileSystemID: fs-484648c8, accessPointIDs: [fsap-097bd0daaba932e64]}]}}}`))
	if objects["SharedVolume team-a/demo"].GetAnnotations()["a"] != "b" {
		t.Error("no annotation")
	}
	contains(t, "policy", objects["SharedVolumePolicy /team-a"].Object, parsed(t, "spec: {namespaces: {names: [team-a]}, fileSystems: [{fileSystemID: fs-484648c8, accessPointIDs: [fsap-097bd0daaba932e64]}]}"))
}
