// Command kubectl-asterism shows the state of Asterism's control planes, and installs their
// operators. kubectl runs it as "kubectl asterism".
package main

import (
	"os"

	"asterism.dev/cli/internal/command"
)

func main() {
	os.Exit(command.Main())
}
