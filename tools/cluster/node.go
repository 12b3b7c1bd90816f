package main

import (
	"context"
	"errors"
)

const containerdSocket = "/run/asterism/containerd.sock"

var errNode = errors.New("full mode is not there yet; use --control-plane-only")

type machine struct{ Dir string }

func readMachine() (*machine, error)                          { return nil, nil }
func (m *machine) undo(ctx context.Context) error             { return nil }
func killPods() (int, error)                                  { return 0, nil }
func (c *cluster) checkMachine(ctx context.Context) error     { return errNode }
func (c *cluster) prepareMachine(ctx context.Context) error   { return errNode }
func (c *cluster) writeNodeFiles() error                      { return errNode }
func (c *cluster) settleNode(ctx context.Context) error       { return errNode }
func (c *cluster) containerd() component                      { return component{} }
func (c *cluster) kubeScheduler() component                   { return component{} }
func (c *cluster) kubelet() component                         { return component{} }
func (c *cluster) kubeProxy() component                       { return component{} }
func (c *cluster) coreDNS() component                         { return component{} }
func (c *cluster) load(ctx context.Context, _ []string) error { return errNode }
