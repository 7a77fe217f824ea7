// Package audit keeps a log of what a crawl did on the wire, and checks such a log later. The
// format of the entries may change before version 1 of the module.
//
//	log, err := audit.Open("crawl.audit")
//	...
//	robots, err := collyrobots.WithRobots(c, collyrobots.OnEveryEvent(log.Event))
//	...
//	robots.Close()
//	err = log.Close()
//
// The log is a Merkle tree in the formats of C2SP, so other tools can read it: tlog-tiles for the
// entries and the tree, and tlog-checkpoint, an Ed25519-signed note, for its size and root. Once
// another party has a checkpoint, no entry before it can be changed, removed or inserted without
// notice. It cannot be proved that everything was logged.
//
// # Files
//
//	checkpoint        the last checkpoint
//	tile/entries/...  the entries, 256 in a file
//	tile/0/... etc.   the hashes of the tree
//	pending-N         entries after the last full file of entries
//	robots/HASH       each robots.txt that was in force, by its SHA-256 in hexadecimal digits
//	key, key.pub      the keys of the checkpoints; without the option Key they are made by Open
//
// # Entries
//
// An entry is a JSON object: an Event of the crawl or a Notice of the log, a salt of 16 random
// bytes, and the version of this format.
//
//	{"event":{"kind":"started",...},"salt":"...","v":1}
//	{"body":"6b86...","event":{"kind":"robots",...},"salt":"...","v":1}
//	{"log":{"kind":"opened",...},"salt":"...","v":1}
//
// The entry of a robots event has the SHA-256 of the file, if the rules of a file are in force.
// Because of the salt, an entry cannot be found by trial from its hash, which proofs of other entries
// have.
package audit
