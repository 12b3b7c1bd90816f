package apply

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Hash returns the hash of a value that encodes as JSON, as 16 hex digits. encoding/json
// sorts the keys of maps, so that equal values have equal hashes.
func Hash(value any) string {
	sum := sha256.Sum256(encode(value))
	return hex.EncodeToString(sum[:8])
}

// KeyedHash is Hash for a value with secrets: without the key, nobody can compare the hash with
// that of a guess.
func KeyedHash(key []byte, value any) string {
	mac := hmac.New(sha256.New, key)
	mac.Write(encode(value))
	return hex.EncodeToString(mac.Sum(nil)[:8])
}

func encode(value any) []byte {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) //nolint:forbidigo // a value that does not encode as JSON is a bug
	}
	return data
}
