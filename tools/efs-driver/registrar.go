package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// plugins is the mount point of the kubelet's folder of registrations.
const plugins = "/registration"

// startTime is the time in which the driver must answer.
const startTime = time.Minute

// register registers the driver with the kubelet, as long as this program runs.
func register(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("csi-node-driver-registrar", flag.ExitOnError)
	address := flags.String("csi-address", "/run/csi/socket", "socket of the driver")
	endpoint := flags.String("kubelet-registration-path", "", "path of the driver's socket on the node")
	flags.Int("v", 0, "has no effect")
	if err := flags.Parse(args); err != nil {
		return err
	}
	name, err := driverName(ctx, *address)
	if err != nil {
		return fmt.Errorf("read the driver's name at %s: %w", *address, err)
	}
	socket := filepath.Join(plugins, name+"-reg.sock")
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return err
	}
	r := &registrar{refused: make(chan error, 1), info: registration.PluginInfo{
		Type: registration.CSIPlugin, Name: name, Endpoint: *endpoint, SupportedVersions: []string{"1.0.0"},
	}}
	return r.serve(ctx, listener)
}

// driverName waits until the driver answers.
func driverName(ctx context.Context, address string) (string, error) {
	connection, err := connect(address)
	if err != nil {
		return "", err
	}
	defer func() { _ = connection.Close() }()
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	info, err := csi.NewIdentityClient(connection).GetPluginInfo(ctx, &csi.GetPluginInfoRequest{}, grpc.WaitForReady(true))
	return info.GetName(), err
}

func connect(address string) (*grpc.ClientConn, error) {
	return grpc.Dial("unix://"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
}

// registrar answers the kubelet's requests for registration.
type registrar struct {
	info    registration.PluginInfo
	refused chan error
}

// serve serves until the context ends or the kubelet refuses the driver.
func (r *registrar) serve(ctx context.Context, listener net.Listener) error {
	server := grpc.NewServer()
	registration.RegisterRegistrationServer(server, r)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case err := <-r.refused:
		return err
	case <-ctx.Done():
		server.Stop()
		return nil
	}
}

func (r *registrar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &r.info, nil
}

func (r *registrar) NotifyRegistrationStatus(_ context.Context, status *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	if status.PluginRegistered {
		fmt.Printf("the kubelet has registered %s\n", r.info.Name)
	} else {
		r.refused <- fmt.Errorf("the kubelet refuses driver %s: %s", r.info.Name, status.Error)
	}
	return &registration.RegistrationStatusResponse{}, nil
}
