package apply

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Hash returns the hash of a value that encodes as JSON, as 16 hex digits. encoding/json
// sorts the keys of maps, so that equal values have equal hashes.
func Hash(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) //nolint:forbidigo // a value that does not encode as JSON is a bug
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}
