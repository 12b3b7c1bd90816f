package cluster

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

var pod = types.NamespacedName{Namespace: "openstack", Name: "demo-scheduler-0"}

// connect connects to a server that answers instead of an API server with a kubelet.
func connect(t *testing.T, answer http.HandlerFunc) *Cluster {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	content := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q}}]
contexts: [{name: c, context: {cluster: c, namespace: team-a}}]
current-context: c
`, server.URL)
	if err := os.WriteFile(kubeconfig, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig = &kubeconfig
	c, err := Connect(flags)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestNamespaceIsThatOfTheKubeconfig(t *testing.T) {
	if got := connect(t, http.NotFound).Namespace; got != "team-a" {
		t.Errorf("namespace %q, want team-a", got)
	}
}

func TestLogs(t *testing.T) {
	c := connect(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, r.URL.Path, " ", r.URL.RawQuery)
	})
	got, err := c.Log(context.Background(), pod, &corev1.PodLogOptions{Container: "nova-scheduler", Previous: true, LimitBytes: new(int64(10))})
	if err != nil {
		t.Fatal(err)
	}
	if want := "/api/v1/namespaces/openstack/pods/demo-scheduler-0/log container=nova-scheduler&limitBytes=10&previous=true"; string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Channels of the protocol v5.channel.k8s.io: the first byte of a message.
const (
	channelOut    = 1
	channelErrOut = 2
	channelStatus = 3
)

// expectInput reads the standard input, if there is one, from its channel.
func expectInput(t *testing.T, connection *websocket.Conn, stdin string) {
	t.Helper()
	if stdin == "" {
		return
	}
	if _, got, err := connection.ReadMessage(); err != nil || string(got) != "\x00"+stdin {
		t.Errorf("the input is %q, %v", got, err)
	}
}

func TestOutput(t *testing.T) {
	for name, test := range map[string]struct {
		stdin, out, errOut, status, wantErr string
	}{
		"an input":  {stdin: "debug = false\n", out: "debug = true\n", status: `{"status":"Success"}`},
		"success":   {out: "debug = true\n", status: `{"status":"Success"}`},
		"a failure": {errOut: "cat: no such file\n", status: `{"status":"Failure","message":"exit code 1"}`, wantErr: "exit code 1: cat: no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			c := connect(t, func(w http.ResponseWriter, r *http.Request) {
				input := map[bool]string{true: "&stdin=true"}[test.stdin != ""]
				if want := "/api/v1/namespaces/openstack/pods/demo-scheduler-0/exec command=cat&command=%2Ffile&container=nova-scheduler&stderr=true" + input + "&stdout=true"; r.URL.Path+" "+r.URL.RawQuery != want {
					t.Errorf("got  %s %s\nwant %s", r.URL.Path, r.URL.RawQuery, want)
				}
				upgrade := websocket.Upgrader{Subprotocols: []string{"v5.channel.k8s.io"}}
				connection, err := upgrade.Upgrade(w, r, nil)
				if err != nil {
					t.Error(err)
					return
				}
				defer connection.Close()
				expectInput(t, connection, test.stdin)
				for channel, text := range []string{channelOut: test.out, channelErrOut: test.errOut, channelStatus: test.status} {
					if text == "" {
						continue
					}
					if err := connection.WriteMessage(websocket.BinaryMessage, append([]byte{byte(channel)}, text...)); err != nil {
						t.Error(err)
					}
				}
				end := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
				if err := connection.WriteMessage(websocket.CloseMessage, end); err != nil {
					t.Error(err)
				}
				for err == nil { // until the client closes the connection as well
					_, _, err = connection.ReadMessage()
				}
			})
			var stdin io.Reader
			if test.stdin != "" {
				stdin = strings.NewReader(test.stdin)
			}
			got, err := c.Output(context.Background(), pod, "nova-scheduler", stdin, "cat", "/file")
			if (err == nil) != (test.wantErr == "") || err != nil && !strings.HasSuffix(err.Error(), test.wantErr) {
				t.Errorf("error %v, want %q", err, test.wantErr)
			}
			if string(got) != test.out {
				t.Errorf("got %q, want %q", got, test.out)
			}
		})
	}
}
