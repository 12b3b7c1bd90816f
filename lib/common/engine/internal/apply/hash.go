package apply

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Hash of anything that JSON can say, 16 hex digits. encoding/json sorts the
// keys of maps, so equal values have equal hashes.
func Hash(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) //nolint:forbidigo // only for values that JSON cannot say, which is a bug
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}
