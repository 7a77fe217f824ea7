// This file keeps the input in the fragment of a link. Browsers do not send the fragment to the server.

const longest = 16_000_000; // bytes of the decoded input, which may have six bytes for each byte of the file

// encode returns a fragment for an input. text is a Uint8Array.
export async function encode({ text, name, urls }) {
  // A string with a character for each byte can hold any file, also one that is not UTF-8.
  const input = { text: binary(text), name, urls };
  const packed = await through(new TextEncoder().encode(JSON.stringify(input)), new CompressionStream("deflate-raw"), Infinity);
  return "#1" + btoa(binary(packed)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

// decode returns the input in a fragment, or undefined if there is none.
export async function decode(fragment) {
  if (!fragment.startsWith("#1")) return undefined;
  try {
    const packed = bytes(atob(fragment.slice(2).replaceAll("-", "+").replaceAll("_", "/")));
    const { text, name, urls } = JSON.parse(new TextDecoder().decode(await through(packed, new DecompressionStream("deflate-raw"), longest)));
    return { text: bytes(String(text)), name: String(name), urls: String(urls) };
  } catch {
    return undefined;
  }
}

const bytes = text => Uint8Array.from(text, c => c.charCodeAt(0));

function binary(array) {
  let text = "";
  for (let i = 0; i < array.length; i += 8192) text += String.fromCharCode(...array.subarray(i, i + 8192));
  return text;
}

// through returns what a stream makes of some bytes. It fails if that is longer than a limit.
async function through(input, stream, limit) {
  const reader = new Blob([input]).stream().pipeThrough(stream).getReader();
  const parts = [];
  let size = 0;
  for (let part; !(part = await reader.read()).done; ) {
    parts.push(part.value);
    size += part.value.length;
    if (size > limit) throw new Error("the input is too long");
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}
