// Command generate writes meanings.json from the sources of the repository, whose root is
// its argument.
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

func main() {
	if err := write(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(arguments []string) error {
	if len(arguments) != 1 {
		return fmt.Errorf("%d arguments: the only argument is the root of the repository", len(arguments))
	}
	book, err := read(arguments[0])
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(book, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile("meanings.json", append(text, '\n'), 0o644)
}
