// Package keyfile reads the key that signs the requests of a crawler.
package keyfile

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
)

// Read reads an Ed25519 key from a PEM file, as "openssl genpkey -algorithm ed25519" writes it.
func Read(file string) (ed25519.PrivateKey, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s is not a PEM file; openssl genpkey -algorithm ed25519 creates one", file)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s has no private key: %w", file, err)
	}
	private, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s has a key of type %T, not an Ed25519 key", file, key)
	}
	return private, nil
}
