package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// probeTime is the time in which the driver must answer a probe.
const probeTime = 2 * time.Second

// serveHealth serves /healthz, and probes the driver for each request.
func serveHealth(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("livenessprobe", flag.ExitOnError)
	address := flags.String("csi-address", "/run/csi/socket", "socket of the driver")
	port := flags.Int("health-port", 9808, "port of /healthz")
	flags.Int("v", 0, "has no effect")
	if err := flags.Parse(args); err != nil {
		return err
	}
	connection, err := connect(*address)
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	server := &http.Server{Addr: fmt.Sprintf(":%d", *port), Handler: health(csi.NewIdentityClient(connection)), ReadHeaderTimeout: probeTime}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func health(driver csi.IdentityClient) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(answer http.ResponseWriter, question *http.Request) {
		ctx, cancel := context.WithTimeout(question.Context(), probeTime)
		defer cancel()
		if _, err := driver.Probe(ctx, &csi.ProbeRequest{}); err != nil {
			http.Error(answer, err.Error(), http.StatusInternalServerError)
		}
	})
	return mux
}
