package main

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// driver is a fake driver, whose probes fail if it is unhealthy.
type driver struct {
	csi.UnimplementedIdentityServer
	unhealthy bool
}

func (d *driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: "efs.csi.aws.com"}, nil
}

func (d *driver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	if d.unhealthy {
		return nil, status.Error(codes.Internal, "unhealthy")
	}
	return &csi.ProbeResponse{}, nil
}

// serve serves the driver at a socket.
func serve(t *testing.T, d *driver) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "csi.sock")
	listener, err := net.Listen("unix", socket)
	must(t, err)
	server := grpc.NewServer()
	csi.RegisterIdentityServer(server, d)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return socket
}

func TestNameOfDriver(t *testing.T) {
	name, err := driverName(t.Context(), serve(t, &driver{}))
	if err != nil || name != "efs.csi.aws.com" {
		t.Errorf("got %q, %v", name, err)
	}
}

func TestHealthzReportsTheDriversHealth(t *testing.T) {
	d := &driver{}
	connection, err := connect(serve(t, d))
	must(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	handler := health(csi.NewIdentityClient(connection))
	for unhealthy, want := range map[bool]int{false: http.StatusOK, true: http.StatusInternalServerError} {
		d.unhealthy = unhealthy
		answer := ask(handler)
		if answer.Code != want || unhealthy != strings.Contains(answer.Body.String(), "unhealthy") {
			t.Errorf("unhealthy %v: got %d %s, want %d", unhealthy, answer.Code, answer.Body, want)
		}
	}
}

// ask asks again, for at most a minute, if the driver has not answered in time on a slow machine.
func ask(handler http.Handler) *httptest.ResponseRecorder {
	for began := time.Now(); ; {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/healthz", nil))
		if !strings.Contains(answer.Body.String(), codes.DeadlineExceeded.String()) || time.Since(began) > time.Minute {
			return answer
		}
	}
}

func TestRefusalOfTheKubeletEndsTheRegistrar(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "reg.sock")
	listener, err := net.Listen("unix", socket)
	must(t, err)
	r := &registrar{refused: make(chan error, 1), info: registration.PluginInfo{Name: "efs.csi.aws.com"}}
	ended := make(chan error, 1)
	go func() { ended <- r.serve(t.Context(), listener) }()

	connection, err := connect(socket)
	must(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	kubelet := registration.NewRegistrationClient(connection)
	info, err := kubelet.GetInfo(t.Context(), &registration.InfoRequest{})
	if err != nil || info.Name != "efs.csi.aws.com" {
		t.Fatalf("got %v, %v", info, err)
	}
	_, err = kubelet.NotifyRegistrationStatus(t.Context(), &registration.RegistrationStatus{PluginRegistered: true})
	must(t, err)
	_, err = kubelet.NotifyRegistrationStatus(t.Context(), &registration.RegistrationStatus{Error: "no such version"})
	must(t, err)
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "no such version") {
		t.Errorf("the registrar ended with %v", err)
	}
}
