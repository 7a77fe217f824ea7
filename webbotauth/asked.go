package webbotauth

import (
	"net/http"

	"github.com/dunglas/httpsfv"
)

// maxAccept is the longest Accept-Signature that is parsed, in bytes.
const maxAccept = 4 << 10

// maxNonce is the longest nonce that a site may ask for, in bytes.
const maxNonce = 256

// Asked reports whether a response asks for a signature that s can make: it has the status 403, or
// 429 for a nonce that was used too often, and a header Accept-Signature (RFC 9421, section 5.1;
// draft-ietf-webbotauth-httpsig-protocol-01, "Requesting a Message Signature"). nonce is the value
// that the next signature should have, or empty if the site leaves it to the crawler.
//
// A site may ask for components, a tag, an algorithm or a key that s does not use. Asked then
// returns false, because RFC 9421, section 5.2, says not to sign in another way.
func (s *Signer) Asked(resp *http.Response) (nonce string, ok bool) {
	if s.KeyID() == "" {
		return "", false
	}
	if resp.StatusCode != http.StatusForbidden && resp.StatusCode != http.StatusTooManyRequests {
		return "", false
	}
	values := resp.Header["Accept-Signature"]
	size := 0
	for _, v := range values {
		size += len(v)
	}
	if size == 0 || size > maxAccept {
		return "", false
	}
	return s.askedBy(values)
}

// askedBy is Asked for the values of Accept-Signature.
func (s *Signer) askedBy(values []string) (nonce string, ok bool) {
	wanted, err := httpsfv.UnmarshalDictionary(values)
	if err != nil {
		return "", false
	}
	for _, name := range wanted.Names() {
		member, _ := wanted.Get(name)
		list, isList := member.(httpsfv.InnerList)
		if !isList || !s.covers(list) {
			continue
		}
		nonce, ok = s.fulfils(list.Params)
		if ok {
			return nonce, true
		}
	}
	return "", false
}

// covers reports whether the signatures of s cover all components of a list.
func (s *Signer) covers(list httpsfv.InnerList) bool {
	for _, item := range list.Items {
		name, _ := item.Value.(string)
		switch name {
		case "@authority":
		case "@method", "@path":
			if !s.profile.narrow {
				return false
			}
		case "signature-agent":
			if s.profile.dictionary && isKeyOnly(item.Params) {
				continue
			}
		default:
			return false
		}
		if len(item.Params.Names()) > 0 {
			return false
		}
	}
	return true
}

// isKeyOnly reports whether the parameters of signature-agent are one key (RFC 9421, section 2.1.2).
// Which key it is does not matter, because the site does not know the label of the signature.
func isKeyOnly(params *httpsfv.Params) bool {
	names := params.Names()
	if len(names) != 1 || names[0] != "key" {
		return false
	}
	value, _ := params.Get("key")
	_, isText := value.(string)
	return isText
}

// fulfils reports whether s can make a signature with these parameters, and returns their nonce.
func (s *Signer) fulfils(params *httpsfv.Params) (nonce string, ok bool) {
	for _, name := range params.Names() {
		value, _ := params.Get(name)
		text, isText := value.(string)
		switch name {
		case "created", "expires":
			ok = value == true
		case "nonce":
			ok = isText && text != "" && len(text) <= maxNonce
			nonce = text
		case "tag":
			ok = text == requestTag
		case "alg":
			ok = text == "ed25519"
		case "keyid":
			ok = text == s.KeyID()
		default:
			ok = false
		}
		if !ok {
			return "", false
		}
	}
	return nonce, true
}
