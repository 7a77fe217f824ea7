package audit

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/collyrobots/collyrobots/audit/internal/tiles"
)

// A key signs and verifies the checkpoints of one log. Its name is the origin of the log.
type key struct {
	signer   note.Signer
	verifier note.Verifier
}

// openKey returns the key with this text, or that of the folder if the text is "", and the last
// checkpoint. It makes a key if there is none. It writes nothing if the checkpoint was signed with
// another key.
func openKey(dir, text string) (k *key, signed tlog.Tree, err error) {
	text, isNew, err := keyText(dir, text)
	if err != nil {
		return nil, signed, err
	}
	k, public, err := parseKey(text)
	if err == nil {
		signed, err = k.lastCheckpoint(dir)
	}
	if err == nil && isNew {
		err = writeWhole(filepath.Join(dir, "key"), []byte(text+"\n"))
	}
	if err == nil {
		err = writeWhole(filepath.Join(dir, "key.pub"), []byte(public+"\n"))
	}
	return k, signed, err
}

// keyText returns the text of the key of a folder, unless text is that of a key.
func keyText(dir, text string) (key string, isNew bool, err error) {
	if text != "" {
		return text, false, nil
	}
	stored, err := os.ReadFile(filepath.Join(dir, "key"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", false, err
	}
	key = strings.TrimSpace(string(stored))
	if key != "" {
		return key, false, nil
	}
	key, err = makeKey()
	return key, true, err
}

// makeKey returns a new key with a random name.
func makeKey() (string, error) {
	var id [8]byte
	rand.Read(id[:])
	private, _, err := note.GenerateKey(rand.Reader, "collyrobots-audit/"+hex.EncodeToString(id[:]))
	return private, err
}

// parseKey returns the key with the text of a note signer, and the text of its verifier.
func parseKey(text string) (k *key, public string, err error) {
	signer, err := note.NewSigner(text)
	if err != nil {
		return nil, "", errors.New("the key is malformed: want the text of note.GenerateKey")
	}
	parts := strings.SplitN(text, "+", 5) // PRIVATE, KEY, the name, a hash, and the key
	seed, err := base64.StdEncoding.DecodeString(parts[len(parts)-1])
	if err != nil || len(seed) != 1+ed25519.SeedSize {
		return nil, "", errors.New("the key is not an Ed25519 key")
	}
	private := ed25519.NewKeyFromSeed(seed[1:])
	public, err = note.NewEd25519VerifierKey(signer.Name(), private.Public().(ed25519.PublicKey))
	if err != nil {
		return nil, "", err
	}
	verifier, err := note.NewVerifier(public)
	if err != nil {
		return nil, "", err
	}
	return &key{signer: signer, verifier: verifier}, public, nil
}

// sign returns the checkpoint of a tree.
func (k *key) sign(size uint64, root tlog.Hash) ([]byte, error) {
	text := fmt.Sprintf("%s\n%d\n%s\n", k.signer.Name(), size, root)
	return note.Sign(&note.Note{Text: text}, k.signer)
}

// lastCheckpoint returns the size and the root of the last checkpoint of a folder, or zero if there
// is none.
func (k *key) lastCheckpoint(dir string) (tlog.Tree, error) {
	text, err := tiles.NewReader(dir).Checkpoint()
	if err != nil || text == nil {
		return tlog.Tree{}, err
	}
	n, err := note.Open(text, note.VerifierList(k.verifier))
	if err != nil {
		return tlog.Tree{}, fmt.Errorf("%w: %w", ErrKey, err)
	}
	return parseCheckpoint(n.Text, k.verifier.Name())
}

// parseCheckpoint returns the size and the root in the text of a checkpoint (tlog-checkpoint).
func parseCheckpoint(text, origin string) (tree tlog.Tree, err error) {
	lines := strings.Split(text, "\n")
	if len(lines) < 4 || lines[0] != origin {
		return tlog.Tree{}, fmt.Errorf("%w: the checkpoint is not one of %s", ErrDamaged, origin)
	}
	tree.N, err = strconv.ParseInt(lines[1], 10, 64)
	if err != nil || tree.N < 0 || strconv.FormatInt(tree.N, 10) != lines[1] {
		return tlog.Tree{}, fmt.Errorf("%w: the checkpoint has the size %q", ErrDamaged, lines[1])
	}
	tree.Hash, err = tlog.ParseHash(lines[2])
	if err != nil {
		return tlog.Tree{}, fmt.Errorf("%w: the checkpoint has the root %q", ErrDamaged, lines[2])
	}
	return tree, nil
}
