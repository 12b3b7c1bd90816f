// Command operator writes the skeleton of a new operator, and everything that lists the
// operators: the kustomizations in config, the modules of the CLI, the tools and the linters,
// and the kinds that the CLI knows.
package main

import (
	"flag"
	"fmt"
	"os"
)

const usage = `usage:
  operator new -name NAME [-root DIR]
        copy operators/` + model + ` with other names, and add it to go.work
  operator lists [-root DIR]
        write what lists the operators, from the folders in operators
`

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "operator: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("no command\n%s", usage)
	}
	flags := flag.NewFlagSet("operator "+args[0], flag.ExitOnError)
	flags.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	root := flags.String("root", "..", "directory of the repository")
	name := flags.String("name", "", "name of a new operator, such as nova-example")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	switch args[0] {
	case "new":
		return create(*root, *name)
	case "lists":
		return writeLists(*root)
	default:
		return fmt.Errorf("unknown command %s\n%s", args[0], usage)
	}
}
