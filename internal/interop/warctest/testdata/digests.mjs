// Computes the digests of all records of a WARC file again, with warcio, and prints a line of JSON for
// each record.
import { createReadStream } from "node:fs";
import { WARCParser, WARCSerializer } from "warcio";

const names = ["WARC-Block-Digest", "WARC-Payload-Digest"];
const file = createReadStream(process.argv[2]);
for await (const record of WARCParser.iterRecords(file, { keepHeadersCase: true })) {
  const headers = record.warcHeaders.headers;
  const stored = names.map((name) => headers.get(name));
  const serializer = new WARCSerializer(record, { digest: { algo: "sha-256", prefix: "sha256:" } });
  const size = await serializer.digestRecord({ recompute: true });
  const wrong = names.filter((name, i) => stored[i] && headers.get(name) !== stored[i]);
  console.log(JSON.stringify({ type: record.warcType, uri: record.warcTargetURI ?? "", size, wrong }));
}
