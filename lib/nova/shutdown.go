package nova

import (
	"fmt"

	"asterism.dev/lib/common/config"
)

// EndWithin adds the default for the time that a stopped service leaves to the work that it has
// begun. From release 33 on it takes no more calls, and then waits for this time in any case, by
// default for all but 10 seconds of graceful_shutdown_timeout: meanwhile nobody answers the calls
// of a service with one pod (nova: conductor/manager.py, graceful_shutdown).
func EndWithin(defaults *config.Sections, seconds int) {
	defaults.Set("DEFAULT", "manager_shutdown_timeout", fmt.Sprint(seconds))
}
