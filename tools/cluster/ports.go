package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"time"

	"asterism.dev/tools/internal/process"
)

// Ports are chosen below the NodePorts (30000) and the kernel's ephemeral range (32768),
// so that neither occupies a component's port while the component is down.
const (
	firstPort = 20000
	lastPort  = 29999
)

// choosePorts gives every name a different port on which nothing listens.
func choosePorts(names []string, free func(port int) bool) (map[string]int, error) {
	ports, chosen := map[string]int{}, map[int]bool{}
	for _, name := range names {
		for tries := 0; ports[name] == 0; tries++ {
			if tries == 1000 {
				return nil, fmt.Errorf("no free port between %d and %d for %s", firstPort, lastPort, name)
			}
			port := firstPort + rand.IntN(lastPort-firstPort+1)
			if !chosen[port] && free(port) {
				ports[name], chosen[port] = port, true
			}
		}
	}
	return ports, nil
}

// portFreed waits up to 3 s for the port of a process that was just killed.
func portFreed(port int) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	return process.Poll(ctx, pollInterval, func() error {
		if !portFree(port) {
			return fmt.Errorf("port %d is in use", port)
		}
		return nil
	}) == nil
}

// portFree reports whether a program could listen on the port at every address of this machine.
func portFree(port int) bool {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", net.JoinHostPort("", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}
