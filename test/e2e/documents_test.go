package e2e

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// notRun has the programs, and the beginnings of commands, in the pages that this suite does
// not run, with the reason.
var notRun = map[string]string{
	"apt-get":                              "prepares a node",
	"groupadd":                             "prepares a node",
	"useradd":                              "prepares a node",
	"install":                              "prepares a node",
	"make":                                 "tools/docs compares the targets with the Makefile",
	"cd":                                   "builds an image",
	"helm":                                 "the demo installs the operators without Helm",
	"podman":                               "the cluster has no podman",
	"skopeo":                               "no registry",
	"mariadb-dump":                         "the cloud of two cells moves a database with it",
	"mariadb --host=new":                   "the cloud of two cells moves a database with it",
	"for image in":                         "no registry",
	`mariadb -e "ALTER`:                    "changes the demo",
	"examples/demo/":                       "make demo runs these scripts",
	"kubectl asterism":                     "the tests of cli replay these commands",
	"kubectl edit":                         "needs a terminal",
	"kubectl create secret generic ironic": "the administrator writes the file",
	"kubectl create secret generic scheduler-cache":  "the administrator writes the file",
	"kubectl apply --server-side":                    "make push writes the folder",
	"kubectl apply -n openstack -f .release/":        "make release writes the folder",
	"kubectl apply -f .release/":                     "make release writes the folder",
	"kubectl delete -n openstack -f .release/":       "make release writes the folder",
	"kubectl delete --ignore-not-found -f .release/": "make release writes the folder",
	"kubectl delete -f .release/":                    "make release writes the folder",
	"kubectl delete -k .demo/":                       "make push writes the folder",
	"kubectl delete catalogsource":                   "the demo has no OLM",
	"kubectl apply -n openshift-marketplace":         "the demo has no OLM",
	"kubectl wait -n openshift-marketplace":          "the demo has no OLM",
	"kubectl apply -f config/olm/":                   "the demo has no OLM",
	"kubectl get csv":                                "the demo has no OLM",
	"kubectl patch operatorcondition":                "the demo has no OLM",
	"kubectl label node NODE":                        "a placeholder",
	"kubectl patch configmap argocd-cm":              "the demo has no Argo CD",
	"kubectl get podmonitor":                         "the demo has no Prometheus Operator",
	"kubectl describe secret -n asterism-system":     "the demo has no Prometheus Operator",
	"kubectl logs --previous":                        "the operator has not restarted",
	"openstack console url show":                     "a placeholder",
	"kubectl exec -n openstack deploy/openstackclient --   openstack compute service set --disable demo-cell1-test": "an example of another compute",
	"kubectl wait -n openstack novametadata/demo-metadata":                                                          "the demo does not expose its metadata service",
	"kubectl delete -n openstack -f config/run-on-host/account.yaml":                                                "the demo has no such pods",
	"kubectl delete -f config/run-on-host/admission.yaml":                                                           "the demo has no such pods",
	"kubectl set env":                         "changes the operators of the demo",
	"kubectl logs -n openstack job/NAME":      "a placeholder",
	"kubectl describe sharedvolume -n team-a": "an example of another namespace",
	"kubectl wait -n openstack controlplane/demo --for=jsonpath='{.status.nova.readyCells}'=2": "the demo has one cell",
	`kubectl get secret -n openstack mariadb-admin -o go-template='{{index .data "ca.crt"`:     "the demo has no TLS",

	"kubectl create secret generic asterism-shared-volume-aws":                           "the administrator writes the files",
	"kubectl apply -n team-a":                                                            "an example of another namespace",
	"kubectl annotate sharedvolume -n team-a":                                            "an example of another namespace",
	"kubectl describe secret asterism-shared-volume-aws":                                 "the demo has no account of AWS",
	"kubectl logs -n asterism-storage deployment/asterism-shared-volume-operator | grep": "the demo has no account of AWS",
	"kubectl exec -n openstack demo-cell2-conductor-0":                                   "the demo has one cell",
	"examples/demo-libvirt/":                                                             "the specs of an instance run these scripts",
	"kubectl get novacompute -n openstack demo-cell1-rack2":                              "an example of another compute",
	"kubectl exec -i -n openstack deploy/openstackclient -- python3":                     "a placeholder",
	"kubectl exec -n openstack deploy/openstackclient -- openstack flavor create":        "changes the demo",
	"kubectl exec -n openstack deploy/openstackclient --   openstack --os-compute":       "changes the demo",
	"kubectl exec -n openstack deploy/openstackclient -- openstack console log show":     "the demo has no such instance",

	`kubectl patch controlplane demo -n openstack --type=json -p '[{"op": "test", "path": "/spec/nova/cells/0/computes/1`: "an example of another compute",
}

// Verbs of kubectl. Those that change objects run with --dry-run=server. The commands that
// exec runs are of nova-manage, nova-status and openstack, and can be repeated.
var (
	readingVerbs  = []string{"describe", "exec", "get", "logs", "wait"}
	changingVerbs = []string{"annotate", "apply", "create", "delete", "label", "patch", "scale"}
)

// valid are parts of the output of commands that were understood, and then failed:
// nova-status ends with 1 after a warning.
var valid = []string{"already exists", "Upgrade Check Results"}

// The commands of README, docs/ and docs/guides/ name the objects of the demo.
var _ = Describe("Documents", Serial, func() {
	It("have commands that run on the demo", func(ctx SpecContext) {
		pages, err := filepath.Glob(repository("docs", "*.md"))
		Expect(err).NotTo(HaveOccurred())
		guides, err := filepath.Glob(repository("docs", "guides", "*.md"))
		Expect(err).NotTo(HaveOccurred())
		ran, unused := 0, maps.Clone(notRun)
		isNotRun := func(command string) (known bool) {
			for beginning := range notRun {
				if strings.HasPrefix(command, beginning) {
					delete(unused, beginning)
					known = true
				}
			}
			return known
		}
		for _, page := range slices.Concat(pages, guides, []string{repository("README.md")}) {
			content, err := os.ReadFile(page)
			Expect(err).NotTo(HaveOccurred())
			for _, command := range commands(string(content)) {
				if isNotRun(command) {
					continue
				}
				ran++
				Eventually(func() error { return documented(ctx, command) }).WithContext(ctx).WithTimeout(time.Minute).Should(Succeed(), "%s: %s", filepath.Base(page), command)
			}
		}
		AddReportEntry("commands", ran)
		Expect(ran).To(BeNumerically(">", 40))
		Expect(unused).To(BeEmpty(), "no page has these commands")
	}, SpecTimeout(10*time.Minute))
})

// commands returns the commands of the blocks of a page, each in one line. In a block with
// a prompt the other lines are output.
func commands(page string) (found []string) {
	for i, block := range strings.Split(page, "\n```") {
		lines := strings.Split(block, "\n")
		if language := lines[0]; i%2 == 0 || language != "" && language != "bash" { // text, or a file
			continue
		}
		text := strings.ReplaceAll(strings.Join(lines[1:], "\n"), "\\\n", "")
		if strings.HasPrefix(text, "$ ") {
			_, text, _ = strings.Cut(text, "$ ")
			text, _, _ = strings.Cut(text, "\n")
		}
		if strings.HasPrefix(text, " ") { // a diagram
			continue
		}
		open := false // within quotes, or in a loop
		for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
			if open {
				found[len(found)-1] += "\n" + line
			} else {
				found = append(found, line)
			}
			switch {
			case strings.HasPrefix(line, "for "):
				open = true
			case line == "done":
				open = false
			case strings.Count(line, "'")%2 == 1:
				open = !open
			}
		}
	}
	return found
}

// documented runs a command of a page without lasting changes.
func documented(ctx context.Context, command string) error {
	command, _, _ = strings.Cut(command, " > ") // the file
	command = strings.TrimSuffix(command, " -f")
	words := strings.Fields(command)
	switch words[0] {
	case "mariadb":
		statement := strings.Trim(strings.TrimPrefix(command, "mariadb -e "), `"`)
		_, err := run(ctx, secret(ctx, demoNamespace, "mariadb-admin")["password"]+"\n", "kubectl", "exec", "-i", "--namespace="+demoNamespace, "mariadb-0", "--",
			"sh", "-c", `read -r MYSQL_PWD; export MYSQL_PWD; exec mariadb --host=127.0.0.1 --user=root --execute="$0"`, statement)
		return err
	case "openstack":
		command = "kubectl exec -n openstack deploy/openstackclient -- " + command
	case "kubectl":
		switch verb := words[1]; {
		case slices.Contains(changingVerbs, verb) && !strings.Contains(command, " | "):
			command += " --dry-run=server"
		case verb == "wait":
			command += " --timeout=1s"
		case !slices.Contains(readingVerbs, verb):
			return StopTrying("the suite does not know kubectl " + verb)
		}
	default:
		return StopTrying("the suite does not know " + words[0])
	}
	_, err := run(ctx, "", "bash", "-c", "cd "+repository()+" && "+command)
	if err != nil && slices.ContainsFunc(valid, func(text string) bool { return strings.Contains(err.Error(), text) }) {
		return nil
	}
	return err
}
