package command

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"asterism.dev/lib/common/config"
	"asterism.dev/lib/nova"

	"asterism.dev/cli/cluster"
	"asterism.dev/cli/internal/install"
	"asterism.dev/cli/tree"
)

// update is true if the test shall write the outputs of the commands. enginetest has the flag.
func update() bool { return flag.Lookup("update").Value.String() == "true" }

// now is the time of the commands in testdata.
var now = time.Date(2026, 1, 31, 10, 0, 0, 0, time.UTC)

// prompt begins a command in a transcript.
const prompt = "$ kubectl asterism"

// TestTranscripts runs the commands of each transcript of testdata in the world of its
// folder, and compares the outputs. A line of the standard error begins with "! ".
func TestTranscripts(t *testing.T) {
	transcripts, err := filepath.Glob("testdata/*/*.txt")
	if err != nil || len(transcripts) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, path := range transcripts {
		t.Run(strings.TrimSuffix(strings.TrimPrefix(path, "testdata/"), ".txt"), func(t *testing.T) {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for line := range strings.Lines(string(content)) {
				if arguments, ok := strings.CutPrefix(line, prompt); ok {
					got.WriteString(line + replay(t, filepath.Dir(path), strings.Fields(arguments)))
				}
			}
			if update() {
				if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got.String() != string(content) {
				t.Errorf("%s: the output differs: run the test with -update and read the difference; got\n%s", path, got.String())
			}
		})
	}
}

// replay runs a command and returns its output as a transcript has it.
func replay(t *testing.T, folder string, arguments []string) string {
	t.Helper()
	var out, errOut bytes.Buffer
	env := newTestEnvironment(t, folder, &out, &errOut)
	code := run(context.Background(), arguments, env)
	text := out.String()
	if slices.Contains(arguments, "report") && code == 0 {
		text = unpack(t, &out)
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	for line := range strings.Lines(errOut.String()) {
		text += "! " + line
	}
	return text + fmt.Sprintf("[exit code %d]\n\n", code)
}

func newTestEnvironment(t *testing.T, folder string, out, errOut io.Writer) *environment {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(true)
	objects := newFakeClient(t, folder)
	return &environment{
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: errOut},
		flags:     flags,
		now:       func() time.Time { return now },
		style:     func() tree.Style { return tree.Style{} },
		version:   "v0.0.0-test",
		run:       programOf(t, folder, errOut),
		find:      findOf(folder),
		connect: func() (*cluster.Cluster, error) {
			c := &cluster.Cluster{WithWatch: objects, Namespace: *flags.Namespace, Logs: logsOf(folder), Output: outputOf(t, folder), Version: versionOf(folder)}
			if c.Namespace == "" {
				c.Namespace = "openstack"
			}
			return c, nil
		},
	}
}

// versionOf returns the version of Kubernetes in the file kubernetes, if there is one.
func versionOf(folder string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		content, err := os.ReadFile(filepath.Join(folder, "kubernetes"))
		if errors.Is(err, os.ErrNotExist) {
			return "v1.37.1", nil
		}
		return strings.TrimSpace(string(content)), err
	}
}

// programOf records the commands that would run. A command that begins with a line of the file
// failing fails.
func programOf(t *testing.T, folder string, out io.Writer) func(context.Context, install.Command) error {
	t.Helper()
	failing, err := os.ReadFile(filepath.Join(folder, "failing"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return func(_ context.Context, c install.Command) error {
		fmt.Fprintln(out, "ran:", c)
		for start := range strings.Lines(string(failing)) {
			if strings.HasPrefix(c.String(), strings.TrimSpace(start)) {
				return fmt.Errorf("%s: exit status 1: the lines above have the reason", c)
			}
		}
		return nil
	}
}

// findOf finds every program except those of the file missing.
func findOf(folder string) func(string) error {
	return func(program string) error {
		missing, err := os.ReadFile(filepath.Join(folder, "missing"))
		if err != nil || !slices.Contains(strings.Fields(string(missing)), program) {
			return nil //nolint:nilerr // without the file, no program is missing
		}
		return install.Missing(program)
	}
}

// newFakeClient has the objects of in.yaml, and of the files whose patterns the file objects
// lists. The file forbidden lists kinds that may not be read.
func newFakeClient(t *testing.T, folder string) client.WithWatch {
	t.Helper()
	builder := fake.NewClientBuilder().WithScheme(cluster.Scheme)
	for _, path := range append(filesOf(t, folder), filepath.Join(folder, "in.yaml")) {
		for _, o := range readObjects(t, path) {
			builder.WithObjects(o)
		}
	}
	content, err := os.ReadFile(filepath.Join(folder, "forbidden"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	forbidden := strings.Fields(string(content))
	refuse := func(kind schema.GroupVersionKind) error {
		name := strings.TrimSuffix(kind.Kind, "List")
		if !slices.Contains(forbidden, name) {
			return nil
		}
		return apierrors.NewForbidden(schema.GroupResource{Group: kind.Group, Resource: strings.ToLower(name) + "s"}, "", errors.New("no right"))
	}
	return builder.WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			kind, err := c.GroupVersionKindFor(list)
			if err != nil {
				return err
			}
			if err := refuse(kind); err != nil {
				return err
			}
			return c.List(ctx, list, options...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			kind, err := c.GroupVersionKindFor(o)
			if err != nil {
				return err
			}
			if err := refuse(kind); err != nil {
				return err
			}
			return c.Get(ctx, key, o, options...)
		},
	}).Build()
}

// filesOf returns the files that the patterns in the file objects name.
func filesOf(t *testing.T, folder string) []string {
	t.Helper()
	patterns, err := os.ReadFile(filepath.Join(folder, "objects"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	var files []string
	for pattern := range strings.Lines(string(patterns)) {
		found, err := filepath.Glob(filepath.Join(repository, strings.TrimSpace(pattern)))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: no files: %v", pattern, err)
		}
		files = append(files, found...)
	}
	return files
}

// readObjects reads a file of objects. It sets the UIDs of objects and of owners from kind
// and name, and the data of Secrets, so that the file stays short.
func readObjects(t *testing.T, path string) []*unstructured.Unstructured {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var objects []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		o := &unstructured.Unstructured{}
		if err := decoder.Decode(&o.Object); errors.Is(err, io.EOF) {
			return objects
		} else if err != nil {
			t.Fatal(err)
		}
		o.SetUID(types.UID(o.GetKind() + "/" + o.GetName()))
		owners := o.GetOwnerReferences()
		for i := range owners {
			owners[i].UID = types.UID(owners[i].Kind + "/" + owners[i].Name)
		}
		if len(owners) > 0 {
			o.SetOwnerReferences(owners)
		}
		if about, ok := o.Object["involvedObject"].(map[string]any); ok {
			about["uid"] = fmt.Sprint(about["kind"], "/", about["name"])
		}
		if data, ok := o.Object["stringData"].(map[string]any); ok {
			secret := &corev1.Secret{Data: map[string][]byte{}}
			for key, value := range data {
				secret.Data[key] = []byte(value.(string))
			}
			encoded, err := runtime.DefaultUnstructuredConverter.ToUnstructured(secret)
			if err != nil {
				t.Fatal(err)
			}
			o.Object["data"] = encoded["data"]
			delete(o.Object, "stringData")
		}
		objects = append(objects, o)
	}
}

// logsOf reads logs/POD.CONTAINER.log and logs/POD.CONTAINER.previous.log.
func logsOf(folder string) func(context.Context, types.NamespacedName, *corev1.PodLogOptions) (io.ReadCloser, error) {
	return func(_ context.Context, pod types.NamespacedName, options *corev1.PodLogOptions) (io.ReadCloser, error) {
		name := pod.Name + "." + options.Container
		if options.Previous {
			name += ".previous"
		}
		content, err := os.ReadFile(filepath.Join(folder, "logs", name+".log"))
		if err != nil {
			return nil, errors.New("the container has no log")
		}
		content = content[:min(int64(len(content)), ptr.Deref(options.LimitBytes, int64(len(content))))]
		return io.NopCloser(bytes.NewReader(content)), nil
	}
}

// outputOf answers the commands that the program runs in a pod: from effective.conf, or with
// the real merge-config from the parts in nova.conf.d.
func outputOf(t *testing.T, folder string) func(context.Context, types.NamespacedName, string, io.Reader, ...string) ([]byte, error) {
	t.Helper()
	return func(ctx context.Context, _ types.NamespacedName, _ string, stdin io.Reader, command ...string) ([]byte, error) {
		folder := filepath.Join(folder, "nova.conf.d")
		custom, noParts := os.ReadFile(filepath.Join(folder, config.CustomPart))
		switch {
		case command[0] == "python3":
			return previewOf(ctx, t, folder, stdin, command)
		case !slices.Equal(command, []string{"cat", "/etc/nova/nova.conf.effective"}):
			return nil, fmt.Errorf("unexpected command %v", command)
		case noParts == nil:
			return previewOf(ctx, t, folder, bytes.NewReader(custom), []string{"python3", "-c", preview, "", "", config.CustomPart})
		}
		content, err := os.ReadFile(filepath.Join(filepath.Dir(folder), "effective.conf"))
		if err != nil {
			return nil, errors.New("container not found")
		}
		return content, nil
	}
}

// previewOf runs a command of a pod on this machine, with the files of the pod. In the folder
// python are the options of a small nova.
func previewOf(ctx context.Context, t *testing.T, folder string, stdin io.Reader, command []string) ([]byte, error) {
	t.Helper()
	scripts := t.TempDir()
	for name, content := range config.Scripts(nova.Project().Options...) {
		if err := os.WriteFile(filepath.Join(scripts, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command = slices.Clone(command)
	command[3], command[4] = filepath.Join(scripts, config.MergeConfig), folder
	var problem bytes.Buffer
	program := exec.CommandContext(ctx, "/usr/bin/python3", command[1:]...) // Debian's, which has oslo.config
	program.Stdin, program.Stderr = stdin, &problem
	program.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(filepath.Dir(folder), "python"))
	out, err := program.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(problem.String()))
	}
	return out, err
}

// unpack returns the names and contents of the files of an archive.
func unpack(t *testing.T, archive io.Reader) string {
	t.Helper()
	unzipped, err := gzip.NewReader(archive)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for files := tar.NewReader(unzipped); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return text.String()
		} else if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "=== %s\n%s", header.Name, content)
	}
}
