// Command cp copies a program in an image that has no shell. OLM runs it as cp [-Rv] FROM TO.
package main

import (
	"fmt"
	"os"
	"strings"
)

func main() {
	var paths []string
	for _, argument := range os.Args[1:] {
		if !strings.HasPrefix(argument, "-") {
			paths = append(paths, argument)
		}
	}
	if err := copyProgram(paths); err != nil {
		fmt.Fprintf(os.Stderr, "cp: %v\n", err)
		os.Exit(1)
	}
}

func copyProgram(paths []string) error {
	if len(paths) != 2 {
		return fmt.Errorf("need 2 paths, got %d", len(paths))
	}
	content, err := os.ReadFile(paths[0])
	if err != nil {
		return err
	}
	return os.WriteFile(paths[1], content, 0o755) //nolint:gosec // a program
}
