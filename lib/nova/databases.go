package nova

import (
	"asterism.dev/lib/common/config"
	"asterism.dev/lib/common/workload"
)

// Default names of databases, for a connection Secret without the key database.
const (
	APIDatabaseName   = "nova_api"
	Cell0DatabaseName = "nova_cell0"
	CellDatabaseName  = "nova"
)

// APIDatabase is the connection to the API database through a Secret.
func APIDatabase(secret string) workload.Database {
	return workload.Database{Section: "api_database", Secret: secret, Default: APIDatabaseName}
}

// Cell0Database is the connection to cell0 through a Secret: the [database] of a service that
// belongs to no cell.
func Cell0Database(secret string) workload.Database {
	return workload.Database{Section: "database", Secret: secret, Default: Cell0DatabaseName}
}

// CellDatabase is the connection to the database of a cell through a Secret: the [database] of
// a service that belongs to the cell.
func CellDatabase(secret string) workload.Database {
	return workload.Database{Section: "database", Secret: secret, Default: CellDatabaseName}
}

// LimitRetries adds the default for a service that reads the databases of all cells, for which
// Nova uses the options of [database]: a request to several cells waits for the retries of a
// cell whose database is down, and with retries without limit it would never end. At its start,
// the service first waits without limit for the API database. It then ends if cell0 is at another
// server that is down: Nova has one option for cell0 and the cells.
func LimitRetries(defaults *config.Sections) {
	defaults.Set("database", "max_retries", "3")
	defaults.Set("database", "retry_interval", "1")
}
