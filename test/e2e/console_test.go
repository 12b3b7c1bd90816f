package e2e

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// screen stands for the VNC server of a hypervisor: it speaks as much of RFB 3.8 as the proxy
// needs to connect a browser. Port 8080 is for the readiness probe; port 6969 is the port of
// every console of Nova's fake driver.
const screen = `
import socketserver, threading
class Screen(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.sendall(b"RFB 003.008\n")
        if self.request.recv(12):
            self.request.sendall(bytes([1, 1]))
            self.request.recv(1)
socketserver.ThreadingTCPServer.allow_reuse_address = True
for port in (8080, 6969):
    threading.Thread(target=socketserver.ThreadingTCPServer(("", port), Screen).serve_forever).start()
`

// greeting is the version of RFB with which every VNC server begins.
const greeting = "RFB 003.008\n"

// consoleSpecs turn on the consoles of the demo's cell, and turn them off again.
func consoleSpecs() {
	const proxy = "demo-cell1-novncproxy"

	It("shows the screen of a server to the bearer of a token, and to nobody else", func(ctx SpecContext) {
		nova := signIn(ctx, demoNamespace)
		servers := nova.activeServers(ctx)
		Expect(servers).NotTo(BeEmpty(), "the demo has booted a server")
		changeConsole(ctx, "add", `{"replicas": 2, "exposure": {"type": "Ingress", "hostname": "console.example.org"}}`)
		DeferCleanup(func(ctx SpecContext) {
			changeConsole(ctx, "remove", "null")
			awaitGone(ctx, "NovaNoVNCProxy", demoNamespace, proxy) // its pods keep the open consoles for some time
			kubectl(ctx, "delete", "pods", "--namespace="+demoNamespace, "--selector=app.kubernetes.io/instance="+proxy, "--grace-period=0", "--force", "--ignore-not-found")
			awaitReady(ctx, "ControlPlane", demoNamespace, "demo")
		})
		awaitFalse(ctx, object("NovaNoVNCProxy", demoNamespace, proxy), "EndpointReady", "Progressing", "Ingress "+proxy+" has no address yet")
		changeConsole(ctx, "replace", `{"exposure": {"type": "None"}}`)
		awaitWithin(ctx, patience, "NovaNoVNCProxy", demoNamespace, proxy, func(g Gomega, o *unstructured.Unstructured) {
			g.Expect(isReady(o)).To(BeTrue(), explain(demoNamespace))
		})
		awaitReady(ctx, "ControlPlane", demoNamespace, "demo")
		since := time.Now()

		page, token := nova.console(ctx, servers[0].ID)
		Expect(page.Path).To(Equal("/vnc_lite.html"))
		Expect(statusOf(ctx, page.String(), nil)).To(Equal(http.StatusOK))

		// The fake driver names a host that does not exist, and a path that Nova asks only a
		// hypervisor of another kind for: the row names the stand-in instead.
		serve(ctx, demoNamespace, "screen", screen)
		host := kubectl(ctx, "get", "pod/screen", "--namespace="+demoNamespace, "--output=jsonpath={.status.podIP}")
		execute(ctx, demoNamespace, "UPDATE demo_cell1.console_auth_tokens SET host = '"+host+"', internal_access_path = NULL WHERE instance_uuid = '"+servers[0].ID+"'")
		Expect(openConsole(ctx, page, token)).To(Equal(greeting))
		Expect(openConsole(ctx, page, token)).To(Equal(greeting), "the page can be loaded again")
		Expect(openConsole(ctx, page, "00000000-0000-4000-8000-000000000000")).To(BeEmpty())
		Expect(openConsole(ctx, page, "")).To(BeEmpty())

		log := logsOf(ctx, map[string]string{"app.kubernetes.io/instance": proxy}, "nova-novncproxy", since)
		Expect(log).To(ContainSubstring("nova.compute.rpcapi"), "a process that has validated a token asks the compute for the port")
		Expect(log).NotTo(ContainSubstring(token))
	}, SpecTimeout(10*time.Minute))
}

// changeConsole changes the console proxy of the demo's cell by a JSON patch.
func changeConsole(ctx context.Context, operation, value string) {
	GinkgoHelper()
	kubectl(ctx, "patch", "controlplane/demo", "--namespace="+demoNamespace, "--type=json",
		`--patch=[{"op": "`+operation+`", "path": "/spec/nova/cells/0/noVNCProxy", "value": `+value+`}]`)
}

// console returns the URL of a server's console, as soon as the compute has restarted with
// consoles, and the token in it.
func (c cloud) console(ctx context.Context, id string) (page *url.URL, token string) {
	GinkgoHelper()
	var answer struct {
		Console struct{ URL string } `json:"remote_console"`
	}
	Eventually(func() error {
		compute := c.compute()
		_, err := compute.Post(ctx, compute.ServiceURL("servers", id, "remote-consoles"),
			map[string]any{"remote_console": map[string]string{"protocol": "vnc", "type": "novnc"}},
			&answer, &gophercloud.RequestOpts{OkCodes: []int{http.StatusOK}})
		return err
	}).WithContext(ctx).WithTimeout(patience).Should(Succeed())
	page, err := url.Parse(answer.Console.URL)
	Expect(err).NotTo(HaveOccurred())
	socket, err := url.Parse(page.Query().Get("path"))
	Expect(err).NotTo(HaveOccurred())
	token = socket.Query().Get("token")
	Expect(token).NotTo(BeEmpty(), "the URL has a token")
	return page, token
}

// openConsole opens a websocket as the page does, and returns the content of the first frame;
// "" if the proxy closes the connection instead. The proxy checks the token only after it has
// accepted the websocket.
func openConsole(ctx context.Context, page *url.URL, token string) string {
	GinkgoHelper()
	connection, err := dial(ctx, "tcp", page.Host)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = connection.Close() }()
	Expect(connection.SetDeadline(time.Now().Add(time.Minute))).To(Succeed())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+page.Host+"/?token="+url.QueryEscape(token), nil)
	Expect(err).NotTo(HaveOccurred())
	for name, value := range map[string]string{
		"Connection": "Upgrade", "Upgrade": "websocket", "Origin": "http://" + page.Host,
		"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Protocol": "binary",
	} {
		request.Header.Set(name, value)
	}
	Expect(request.Write(connection)).To(Succeed())
	reader := bufio.NewReader(connection)
	response, err := http.ReadResponse(reader, request)
	Expect(err).NotTo(HaveOccurred())
	Expect(response.StatusCode).To(Equal(http.StatusSwitchingProtocols))

	const binary = 0x82 // the last and only frame of a binary message
	header := make([]byte, 2)
	if _, err := io.ReadFull(reader, header); err != nil || header[0] != binary {
		return ""
	}
	content := make([]byte, header[1])
	_, err = io.ReadFull(reader, content)
	Expect(err).NotTo(HaveOccurred())
	return string(content)
}
