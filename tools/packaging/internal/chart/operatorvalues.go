package chart

import (
	"fmt"
	"strings"

	"asterism.dev/tools/internal/source"
)

var (
	text      = schema{typ: "string"}
	given     = matching(".")
	flag      = schema{typ: "boolean"}
	textMap   = mapOf(text)
	namespace = matching(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	watching  = schema{"oneOf": []any{schema{"const": "*"}, setOf(namespace)}}
)

// operatorValues returns the values of an operator's chart. The schemas of the pod's settings
// are those of the operators' own kinds.
func operatorValues(project *source.Project, operator *source.Operator, images source.Images) ([]value, schema, error) {
	pod, definitions, err := podSchemas(project)
	if err != nil {
		return nil, nil, err
	}
	values := []value{imageValues(project, operator, images)}
	if len(operator.Images) > 0 {
		values = append(values, operandValues(operator, images))
	}
	values = append(values,
		value{key: "imagePullSecrets", comment: "Secrets with credentials for the registry, in the namespace of the release. The Secrets of global.asterism are added.", defaultValue: []any{}, schema: pod["imagePullSecrets"]},
		value{key: "replicas", comment: "Number of pods. One pod works; each other pod waits to replace it.", defaultValue: 1, schema: schema{typ: "integer", "minimum": 0, "maximum": 10}},
		value{key: "args", comment: "Arguments of the operator, for example --zap-log-level=debug.", defaultValue: []any{}, schema: listOf(matching("^--[a-z]"))},
		environmentValue(operator),
		value{key: "resources", comment: "Requests and limits of the operator's container. If you lower the limit of memory below 256Mi, set GOMEMLIMIT in env to three quarters of the limit.", defaultValue: source.Container(operator.Deployment).Resources, schema: pod["resources"]},
		value{key: "nodeSelector", comment: "Labels of the nodes on which the operator runs.", defaultValue: schema{}, schema: textMap},
		value{key: "tolerations", comment: "Taints of nodes that the operator tolerates.", defaultValue: []any{}, schema: pod["tolerations"]},
		value{key: "affinity", comment: "Affinity of the operator's pod.", defaultValue: schema{}, schema: pod["affinity"]},
		value{key: "priorityClassName", comment: "PriorityClass of the operator's pod; empty for the default of the cluster.", defaultValue: "", schema: text},
		value{key: "podAnnotations", comment: "Annotations of the operator's pod.", defaultValue: schema{}, schema: textMap},
	)
	if !operator.ClusterWide {
		values = append(values, value{key: "watchNamespaces", comment: `Namespaces that the operator watches. Empty: the namespaces in which an administrator has created the RoleBindings of the operator. A list: the chart also creates the RoleBindings in these namespaces, which must exist. "*": every namespace; a stolen token of the operator then reads every Secret of the cluster.`, defaultValue: []any{}, schema: watching})
	}
	values = append(values,
		value{key: "crds", comment: "CustomResourceDefinitions of the operator's kinds. Helm never deletes them, because their deletion deletes every object of these kinds.", group: []value{
			{key: "install", comment: "Install and upgrade the CustomResourceDefinitions.", defaultValue: true, schema: flag},
		}},
		value{key: "networkPolicy", comment: "NetworkPolicy of the operator.", group: []value{
			{key: "enabled", comment: "Create the NetworkPolicy.", defaultValue: true, schema: flag},
			{key: "apiServerPorts", comment: "Ports of the API servers that the operator may reach.", defaultValue: []any{443, 6443}, schema: setOf(schema{typ: "integer", "minimum": 1, "maximum": 65535})},
		}},
		value{key: "admissionPolicies", comment: "ValidatingAdmissionPolicies that limit what a stolen token of the operator can do.", group: []value{
			{key: "enabled", comment: "Create the ValidatingAdmissionPolicies.", defaultValue: true, schema: flag},
		}},
		globalValue(globalValues(pod)),
	)
	return values, definitions, nil
}

func globalValues(pod map[string]schema) []value {
	return []value{
		{key: "registry", comment: "Registry of the images of all operators, for example quay.example/mirror, instead of image.registry.", defaultValue: "", schema: text},
		{key: "imagePullSecrets", comment: "Secrets with credentials for the registry, in the namespace of the release.", defaultValue: []any{}, schema: pod["imagePullSecrets"]},
		{key: "watchNamespaces", comment: "watchNamespaces of each operator whose own watchNamespaces is empty.", defaultValue: []any{}, schema: watching},
	}
}

// globalValue has the values of all charts of operators. Its key asterism refuses misspelt
// names; other keys of global belong to other charts.
func globalValue(shared []value) value {
	return value{
		key: "global", comment: "Values that a parent chart gives to all of its charts.", schema: schema{additional: true},
		group: []value{{key: "asterism", comment: "Values of all operators of Asterism.", group: shared}},
	}
}

func imageValues(project *source.Project, operator *source.Operator, images source.Images) value {
	_, digest, _ := strings.Cut(images.Operator(operator), "@")
	return value{key: "image", comment: "Image of the operator.", group: []value{
		{key: "registry", comment: "Host and path of the registry.", defaultValue: project.Registry, schema: given},
		{key: "repository", comment: "Name of the image in the registry.", defaultValue: operator.Package(), schema: given},
		{key: "tag", comment: "Tag of the image; empty for v and the appVersion of the chart.", defaultValue: "", schema: matching(`^([\w][\w.-]{0,127})?$`)},
		{key: "digest", comment: "Digest of the image, such as sha256:0123…, instead of the tag.", defaultValue: digest, schema: matching(`^(sha256:[0-9a-f]{64})?$`)},
		{key: "pullPolicy", comment: "When nodes pull the image.", defaultValue: "IfNotPresent", schema: schema{"enum": []any{"Always", "IfNotPresent", "Never"}}},
	}}
}

// operandValues are the images that the operator starts.
func operandValues(operator *source.Operator, images source.Images) value {
	operands := value{key: "images", comment: "Images that the operator starts. An empty image stands for the operator's own default."}
	for _, image := range operator.Images {
		operands.group = append(operands.group, value{
			key: operandKey(image), comment: "Image in the variable " + image.Variable + ".", defaultValue: images.Operand(image), schema: text,
		})
	}
	return operands
}

// operandKey turns RELATED_IMAGE_LIVENESS_PROBE into livenessProbe.
func operandKey(image source.Image) (key string) {
	for i, word := range strings.Split(image.Name(), "-") {
		if i > 0 {
			word = strings.ToUpper(word[:1]) + word[1:]
		}
		key += word
	}
	return key
}

// fixed are the variables that other values, or the pod's own fields, set.
var fixed = []any{"WATCH_NAMESPACE", "POD_NAMESPACE", "POD_NAME", "POD_SERVICE_ACCOUNT"}

// environmentValue refuses variables that the chart sets by other means.
func environmentValue(operator *source.Operator) value {
	reserved := fixed
	for _, image := range operator.Images {
		reserved = append(reserved[:len(reserved):len(reserved)], image.Variable)
	}
	constants := schema{}
	for _, variable := range source.Container(operator.Deployment).Env {
		if isValue(variable.Name, variable.Value) {
			constants[variable.Name] = variable.Value
		}
	}
	return value{
		key: "env", comment: "Environment variables of the operator. CLUSTER_DOMAIN replaces the domain of the cluster.", defaultValue: constants,
		schema: schema{
			"allOf": []any{textMap, schema{"propertyNames": matching("^[A-Z][A-Z0-9_]*$")}, schema{"propertyNames": schema{"not": schema{"enum": reserved}}}},
		},
	}
}

// podSchemas returns the schemas of the settings of pods, which the API of a service has.
func podSchemas(project *source.Project) (map[string]schema, schema, error) {
	for _, operator := range project.Operators {
		for _, crd := range operator.CRDs {
			spec, err := specOf(crd)
			if err != nil {
				return nil, nil, err
			}
			fields, _ := spec[properties].(map[string]any)
			pod, _ := fields["pod"].(map[string]any)
			if pod == nil || fields["resources"] == nil {
				continue
			}
			settings, _ := pod[properties].(map[string]any)
			both := map[string]any{properties: map[string]any{
				"affinity": settings["affinity"], "tolerations": settings["tolerations"],
				"imagePullSecrets": settings["imagePullSecrets"], "resources": fields["resources"],
			}}
			converted, definitions, err := convertSchema(both)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", crd.Name, err)
			}
			found := map[string]schema{}
			for key, property := range converted[properties].(schema) {
				found[key] = property.(schema)
				delete(found[key], "description")
			}
			return found, definitions, nil
		}
	}
	return nil, nil, fmt.Errorf("no kind has the fields spec.pod and spec.resources")
}
