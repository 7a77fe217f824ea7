// Answers the cases of the conformance suite with urllib.robotparser of the Python in pyodide of npm,
// which is newer than that of most machines. With the argument version, it prints the version of Python.
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { loadPyodide } from 'pyodide';

const python = await loadPyodide();
if (process.argv[2] === 'version') {
  console.log(python.runPython('import platform; platform.python_version()'));
} else {
  const globals = python.toPy({ __name__: 'adapter' });
  python.runPython(readFileSync(new URL('../python/adapter.py', import.meta.url), 'utf8'), { globals });
  python.runPython('def reply(line): return json.dumps(answer(json.loads(line)))', { globals });
  const reply = globals.get('reply');
  for await (const line of createInterface({ input: process.stdin })) console.log(reply(line));
}
