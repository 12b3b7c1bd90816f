package workload

import (
	"strconv"
	"testing"

	"asterism.dev/lib/common/config"
)

// TestPoolOfEachDatabase: a message waits for no connection, a load balancer finds no idle one,
// and a user may choose other values.
func TestPoolOfEachDatabase(t *testing.T) {
	const (
		kept        = 5   // oslo.db: max_pool_size
		messages    = 64  // oslo.messaging: executor_thread_pool_size
		idleSeconds = 240 // Azure
	)
	service := thing(false)
	service.Databases = []Database{{Section: "database"}, {Section: "api_database"}}
	defaults := service.defaults()
	for _, database := range service.Databases {
		option := func(name string) int {
			value, err := strconv.Atoi(defaults.Get(database.Section, name))
			if err != nil {
				t.Errorf("[%s] %s: %v", database.Section, name, err)
			}
			return value
		}
		if pool := kept + option("max_overflow"); pool <= messages {
			t.Errorf("[%s] has %d connections for %d messages", database.Section, pool, messages)
		}
		if age := option("connection_recycle_time"); age <= 0 || age >= idleSeconds {
			t.Errorf("[%s] keeps connections for %d seconds", database.Section, age)
		}
		snippet := "[" + database.Section + "]\nconnection_recycle_time = 60\nmax_overflow = 10\nmax_pool_size = 20\n"
		if err := config.CheckSnippet(snippet, service.owned(config.NewConnections("/etc/thing"))...); err != nil {
			t.Errorf("[%s] cannot be changed: %v", database.Section, err)
		}
	}
}
