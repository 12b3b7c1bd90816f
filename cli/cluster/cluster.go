// Package cluster gives the commands access to a Kubernetes cluster: to objects, logs of
// containers, and files in containers.
package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // login plugins that a kubeconfig may name
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Cluster is the access to a cluster with the rights of a kubeconfig.
type Cluster struct {
	client.WithWatch
	// Namespace is the namespace of the flags, or else of the kubeconfig.
	Namespace string
	// Logs reads the log of a container, until the reader is closed.
	Logs func(ctx context.Context, pod types.NamespacedName, options *corev1.PodLogOptions) (io.ReadCloser, error)
	// Output runs a command in a container, with a standard input unless stdin is nil, and
	// returns the command's standard output.
	Output func(ctx context.Context, pod types.NamespacedName, container string, stdin io.Reader, command ...string) ([]byte, error)
	// Version returns the version of Kubernetes, such as v1.37.1.
	Version func(ctx context.Context) (string, error)
}

// nowhere is the address that the flags return if no cluster is selected.
const nowhere = "http://localhost:8080"

// Connect returns the access to the cluster that the flags select.
func Connect(flags *genericclioptions.ConfigFlags) (*Cluster, error) {
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("no cluster is selected: %w: set KUBECONFIG or --kubeconfig", err)
	}
	if config.Host == nowhere && (flags.APIServer == nil || *flags.APIServer == "") {
		return nil, errors.New("no cluster is selected: set KUBECONFIG or --kubeconfig")
	}
	// The API server limits requests itself, and a report sends some hundreds.
	config.QPS, config.Burst = -1, 0
	config.UserAgent = rest.DefaultKubernetesUserAgent()
	config.WarningHandler = rest.NoWarnings{}
	namespace, _, err := flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	objects, err := client.NewWithWatch(config, client.Options{Scheme: Scheme})
	if err != nil {
		return nil, fmt.Errorf("the API server %s: %w", config.Host, err)
	}
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &Cluster{
		WithWatch: objects,
		Namespace: namespace,
		Logs: func(ctx context.Context, pod types.NamespacedName, options *corev1.PodLogOptions) (io.ReadCloser, error) {
			return typed.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).Stream(ctx)
		},
		Output: func(ctx context.Context, pod types.NamespacedName, container string, stdin io.Reader, command ...string) ([]byte, error) {
			return output(ctx, config, typed, pod, container, stdin, command)
		},
		Version: func(ctx context.Context) (string, error) {
			info, err := typed.ServerVersionWithContext(ctx)
			if err != nil {
				return "", err
			}
			return info.GitVersion, nil
		},
	}, nil
}

// Log returns the log of a container.
func (c *Cluster) Log(ctx context.Context, pod types.NamespacedName, options *corev1.PodLogOptions) ([]byte, error) {
	stream, err := c.Logs(ctx, pod, options)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(stream)
	return content, errors.Join(err, stream.Close())
}

// output runs a command in a container, as kubectl exec does.
func output(ctx context.Context, config *rest.Config, typed kubernetes.Interface, pod types.NamespacedName, container string, stdin io.Reader, command []string) ([]byte, error) {
	request := typed.CoreV1().RESTClient().Post().
		Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: container, Command: command, Stdin: stdin != nil, Stdout: true, Stderr: true}, clientgoscheme.ParameterCodec)
	modern, err := remotecommand.NewWebSocketExecutor(config, "GET", request.URL().String())
	if err != nil {
		return nil, err
	}
	former, err := remotecommand.NewSPDYExecutor(config, "POST", request.URL())
	if err != nil {
		return nil, err
	}
	executor, err := remotecommand.NewFallbackExecutor(modern, former, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	if err != nil {
		return nil, err
	}
	var stdout, stderr bytes.Buffer
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: stdin, Stdout: &stdout, Stderr: io.Writer(&stderr)})
	if text := strings.TrimSpace(stderr.String()); err != nil && text != "" {
		err = fmt.Errorf("%w: %s", err, text)
	}
	return stdout.Bytes(), err
}
