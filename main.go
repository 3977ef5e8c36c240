// Command brood trains one model with a population, in the terminal.
package main

import (
	"os"

	"brood/tui/cli"
)

func main() { os.Exit(cli.Main()) }
