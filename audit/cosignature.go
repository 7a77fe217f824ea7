package audit

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/mod/sumdb/note"
)

// A witnessKey verifies the cosignatures of one witness in the format cosignature/v1
// (https://c2sp.org/tlog-cosignature). It implements note.Verifier.
type witnessKey struct {
	name   string
	hash   uint32
	public ed25519.PublicKey
}

// cosignatureType is the type of a cosignature/v1 key in the text of a verifier key.
const cosignatureType = 0x04

// maxCosigned bounds the times of cosignatures: time.Time has no JSON after the year 9999.
var maxCosigned = uint64(time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC).Unix())

// parseWitnessKey returns the key with the text NAME+HASH+KEY (https://c2sp.org/signed-note, verifier
// keys).
func parseWitnessKey(text string) (*witnessKey, error) {
	parts := strings.SplitN(strings.TrimSpace(text), "+", 3)
	if len(parts) < 3 || parts[0] == "" || strings.ContainsFunc(parts[0], unicode.IsSpace) {
		return nil, errors.New("the key of the witness is malformed: want NAME+HASH+KEY")
	}
	material, err := base64.StdEncoding.DecodeString(parts[2])
	switch {
	case err != nil || len(material) == 0:
		return nil, errors.New("the key of the witness is malformed: want NAME+HASH+KEY")
	case material[0] != cosignatureType || len(material) != 1+ed25519.PublicKeySize:
		return nil, fmt.Errorf("the key of the witness has the type %d, want %d (Ed25519 with a timestamp)", material[0], cosignatureType)
	}
	hash, err := strconv.ParseUint(parts[1], 16, 32)
	sum := sha256.Sum256([]byte(parts[0] + "\n" + string(material)))
	if err != nil || uint32(hash) != binary.BigEndian.Uint32(sum[:]) {
		return nil, errors.New("the key of the witness does not have its hash: a part of it was changed")
	}
	return &witnessKey{name: parts[0], hash: uint32(hash), public: material[1:]}, nil
}

// Name implements note.Verifier.
func (k *witnessKey) Name() string { return k.name }

// KeyHash implements note.Verifier.
func (k *witnessKey) KeyHash() uint32 { return k.hash }

// Verify implements note.Verifier. A cosignature is a time in seconds since 1970 and a signature of
// this time and of the text of the checkpoint.
func (k *witnessKey) Verify(text, cosignature []byte) bool {
	if len(cosignature) != 8+ed25519.SignatureSize {
		return false
	}
	seconds := binary.BigEndian.Uint64(cosignature)
	message := fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s", seconds, text)
	return seconds < maxCosigned && ed25519.Verify(k.public, message, cosignature[8:])
}

// cosignedAt returns the time of a cosignature that a witnessKey has verified.
func cosignedAt(s note.Signature) time.Time {
	// A signature of a note begins with four bytes of the hash of the key.
	cosignature, err := base64.StdEncoding.DecodeString(s.Base64)
	if err != nil || len(cosignature) < 4+8 {
		return time.Time{}
	}
	return time.Unix(int64(binary.BigEndian.Uint64(cosignature[4:])), 0).UTC()
}
