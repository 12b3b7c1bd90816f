package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/cloudflare/ahocorasick"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// leak is a form in which a secret value could leak.
type leak struct {
	secret string // its Secret: namespace/name/key
	form   string
	text   []byte
}

// This runs last and searches the results of all other specs for passwords: those of
// administrators, those of the tests, and the generated ones.
var _ = Describe("A password", Serial, Ordered, func() {
	var leaks leaks

	BeforeAll(func() {
		leaks = allLeaks(collected.values())
		AddReportEntry("secrets", fmt.Sprintf("%d forms of %d values", len(leaks.all), len(collected.values())))
		for _, canary := range []string{canaryMariaDB, canaryRabbitMQ, canaryKeystone, canaryDatabase, canaryBus, canaryIdentity, canaryShared} {
			Expect(slices.ContainsFunc(leaks.all, func(l leak) bool { return string(l.text) == canary })).To(BeTrue(), "no Secret contained %q", canary)
		}
	})

	It("is found in a text, in each of its forms", func() {
		for _, l := range leaks.all {
			Expect(leaks.find(fmt.Appendf(nil, "before %s after", l.text))).NotTo(BeEmpty(), "%s of %s", l.form, l.secret)
		}
		Expect(leaks.find([]byte("nothing"))).To(BeEmpty())
	})

	It("is in no object except its Secrets", func(ctx SpecContext) {
		count := 0
		for _, o := range allObjects(ctx) {
			if o.GetKind() == "Secret" {
				unstructured.RemoveNestedField(o.Object, "data") // searched in the next spec
			}
			text, err := json.Marshal(o.Object)
			Expect(err).NotTo(HaveOccurred())
			Expect(leaks.find(text)).To(BeEmpty(), "%s %s/%s", o.GetKind(), o.GetNamespace(), o.GetName())
			count++
		}
		Expect(count).To(BeNumerically(">", 200))
	})

	It("is in no other Secret, if it is an administrator's", func() {
		administrators := newLeaks(slices.DeleteFunc(slices.Clone(leaks.all), func(l leak) bool { return !isAdministrators(l.secret) }))
		Expect(administrators.all).NotTo(BeEmpty())
		for secret, data := range collected.all() {
			if isAdministrators(secret) {
				continue
			}
			for key, value := range data {
				Expect(administrators.find(value)).To(BeEmpty(), "%s/%s", secret, key)
			}
		}
	})

	It("is in no line of the audit log", func() {
		content, err := os.ReadFile(auditPath())
		Expect(err).NotTo(HaveOccurred())
		// The log contains bodies, also of deleted objects.
		hasBodies, err := regexp.Match(`"resource":"novacells","namespace":"`+crashNamespace+`".*"requestObject":{`, content)
		Expect(hasBodies, err).To(BeTrue(), "the audit log contains no bodies to search")
		Expect(leaks.find(content)).To(BeEmpty())
	})

	It("is in no log of any container", func() {
		Expect(logs.failures()).To(BeEmpty())
		AddReportEntry("logs", fmt.Sprintf("%d followed, %d gone before they could be read", len(logs.seen)-len(logs.gone), len(logs.gone)))
		Expect(len(logs.gone)).To(BeNumerically("<", len(logs.seen)/10), "logs that were gone before they could be read: %v", logs.gone)
		paths, err := filepath.Glob(filepath.Join(logFolder(), "*.log"))
		Expect(err).NotTo(HaveOccurred())
		Expect(len(paths)).To(BeNumerically(">", 50))
		for _, path := range paths {
			content, err := os.ReadFile(path)
			Expect(err).NotTo(HaveOccurred())
			Expect(leaks.find(content)).To(BeEmpty(), filepath.Base(path))
		}
	})
})

// isAdministrators reports whether a Secret, namespace/name or namespace/name/password, is an
// administrator's: the examples end its name in these ways, those of other servers too.
func isAdministrators(secret string) bool {
	name := strings.TrimSuffix(secret, "/password")
	return strings.HasSuffix(name, "-admin") || strings.HasSuffix(name, "-default-user")
}

// leaks finds any of its leaks in one pass over a text.
type leaks struct {
	all     []leak
	matcher *ahocorasick.Matcher
}

func newLeaks(all []leak) leaks {
	var texts [][]byte
	for _, l := range all {
		texts = append(texts, l.text)
	}
	return leaks{all, ahocorasick.NewMatcher(texts)}
}

// find returns the names of the secrets in a text, never their values.
func (l leaks) find(text []byte) []string {
	var found []string
	for _, hit := range l.matcher.MatchThreadSafe(text) {
		found = append(found, l.all[hit].form+" of "+l.all[hit].secret)
	}
	return found
}

// allLeaks lists each different form of each value. Most forms of a value without special
// characters are equal.
func allLeaks(values map[string]string) leaks {
	var all []leak
	known := map[string]bool{}
	for secret, value := range values {
		for form, text := range forms(value) {
			if !known[text] {
				known[text] = true
				all = append(all, leak{secret, form, []byte(text)})
			}
		}
	}
	return newLeaks(all)
}

// forms returns the encodings of a value, by name.
func forms(value string) map[string]string {
	asJSON, _ := json.Marshal(value)
	var plain bytes.Buffer
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value)
	all := map[string]string{
		"plain":                     value,
		"base64":                    strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(value)), "="),
		"base64 of base64":          strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString([]byte(value)))), "="),
		"percent-encoded":           percent(value),
		"percent-encoded, path":     url.PathEscape(value),
		"percent-encoded, query":    url.QueryEscape(value),
		"percent-encoded twice":     percent(percent(value)),
		"percent-encoded as latin1": percent(latin1(value)),
		"JSON":                      strings.Trim(string(asJSON), `"`),
		"JSON without HTML":         strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(plain.String()), `"`), `"`),
		"backslashes":               strings.NewReplacer(`\`, `\\`, `'`, `\'`, `"`, `\"`, `$`, `\$`).Replace(value),
		"oslo.config":               strings.ReplaceAll(value, "$", `\$`),
		"Python":                    strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value),
		"stripped":                  strings.Trim(value, ` '"`),
	}
	return all
}

// percent encodes every byte except letters, digits and -._~
func percent(value string) string {
	var out strings.Builder
	for _, b := range []byte(value) {
		if ('a' <= b && b <= 'z') || ('A' <= b && b <= 'Z') || ('0' <= b && b <= '9') || strings.IndexByte("-._~", b) >= 0 {
			out.WriteByte(b)
		} else {
			fmt.Fprintf(&out, "%%%02X", b)
		}
	}
	return out.String()
}

// latin1 converts each byte to a character, as in the URLs for PyMySQL.
func latin1(value string) string {
	var out strings.Builder
	for _, b := range []byte(value) {
		out.WriteRune(rune(b))
	}
	return out.String()
}

// allObjects lists the objects of every listable kind in the watched namespaces, and those
// without a namespace.
func allObjects(ctx context.Context) []unstructured.Unstructured {
	GinkgoHelper()
	_, served, err := typed.Discovery().ServerGroupsAndResources()
	Expect(err).NotTo(HaveOccurred())
	var all []unstructured.Unstructured
	for _, group := range served {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		Expect(err).NotTo(HaveOccurred())
		for _, resource := range group.APIResources {
			if !slices.Contains(resource.Verbs, "list") || strings.Contains(resource.Name, "/") {
				continue
			}
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(version.WithKind(resource.Kind + "List"))
			Expect(k8s.List(ctx, list)).To(Succeed(), resource.Name)
			for _, o := range list.Items {
				if o.GetNamespace() == "" || watched(o.GetNamespace()) {
					all = append(all, o)
				}
			}
		}
	}
	return all
}

// watched reports whether a namespace is the demo's or the tests', not one of Kubernetes.
func watched(namespace string) bool {
	return !strings.HasPrefix(namespace, "kube-")
}

// secretWatch stores every Secret that existed during the suite.
type secretWatch struct {
	mu   sync.Mutex
	data map[string]map[string][]byte // by namespace/name
}

var collected = secretWatch{data: map[string]map[string][]byte{}}

func (w *secretWatch) follow(ctx context.Context) {
	for ctx.Err() == nil {
		secrets, err := k8s.Watch(ctx, &corev1.SecretList{})
		if err != nil {
			continue
		}
		for event := range secrets.ResultChan() {
			if secret, ok := event.Object.(*corev1.Secret); ok && event.Type != watch.Bookmark && watched(secret.Namespace) {
				w.remember(secret)
			}
		}
	}
}

func (w *secretWatch) remember(secret *corev1.Secret) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.data[secret.Namespace+"/"+secret.Name] = secret.Data
}

func (w *secretWatch) all() map[string]map[string][]byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.data)
}

// values returns the secret values by namespace/name/key. A value in several Secrets is
// returned once.
func (w *secretWatch) values() map[string]string {
	values, known := map[string]string{}, map[string]bool{}
	for name, data := range w.all() {
		for key, value := range data {
			if (strings.HasSuffix(strings.ToLower(key), "password") || key == "sharedSecret") && len(value) >= 12 && !known[string(value)] {
				known[string(value)] = true
				values[name+"/"+key] = string(value)
			}
		}
	}
	return values
}
