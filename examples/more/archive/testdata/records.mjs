// Prints a line of JSON for each record of a WARC file, with the digests that warcio does not confirm.
// Computing the digests of a record uses up its content, so the file is read twice.
import { createReadStream } from "node:fs";
import { WARCParser, WARCSerializer } from "warcio";

const names = ["WARC-Block-Digest", "WARC-Payload-Digest"];
const read = () => WARCParser.iterRecords(createReadStream(process.argv[2]), { keepHeadersCase: true });
const digests = [];
for await (const record of read()) {
  const headers = record.warcHeaders.headers;
  const stored = names.map((name) => headers.get(name));
  await new WARCSerializer(record, { digest: { algo: "sha-256", prefix: "sha256:" } }).digestRecord({ recompute: true });
  digests.push({ digests: stored.filter(Boolean).length, wrong: names.filter((name, i) => stored[i] && headers.get(name) !== stored[i]) });
}
for await (const record of read()) {
  const headers = record.warcHeaders.headers;
  console.log(JSON.stringify({
    type: record.warcType, uri: record.warcTargetURI ?? "", version: record.warcHeaders.statusline, status: String(record.httpHeaders?.statusCode ?? ""),
    content: Buffer.from(await record.readFully(false)).toString("latin1"), ...digests.shift(),
    refers: headers.get("WARC-Refers-To") ?? "", id: headers.get("WARC-Record-ID"),
  }));
}
