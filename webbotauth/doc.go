// Package webbotauth signs the requests of a crawler, so that sites can verify who has sent them.
//
// Web Bot Auth is HTTP Message Signatures (RFC 9421) with an Ed25519 key. The crawler publishes its
// public keys in a directory and names the directory in the header Signature-Agent. A site reads
// the directory and verifies the signature.
//
// The texts are drafts, and their verifiers differ. When one changes, a new minor version may add values
// and may write other headers. The package follows:
//
//   - draft-ietf-webbotauth-httpsig-protocol-01 (29 October 2026), for the profile Draft, the key
//     directory and Accept-Signature
//   - Cloudflare's page "Web Bot Auth" of 2026, which refers to
//     draft-meunier-web-bot-auth-architecture-02 and draft-meunier-http-message-signatures-directory-01,
//     for the profile Cloudflare
//   - draft-meunier-webbotauth-registry-04 (27 October 2026), for the Signature Agent Card
//   - RFC 9421 (signatures), RFC 9651 (structured fields), RFC 7638 and RFC 8037 (thumbprints of
//     keys)
//
// A collector signs its requests with the option SignRequests of package collyrobots. Any other
// program can call Signer.Sign.
package webbotauth
