// The types of the package, checked by the package typescript.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import test from 'node:test';

let compiler;
try {
    compiler = createRequire(import.meta.url).resolve('typescript/bin/tsc');
} catch {}

test('the types', { skip: !compiler && 'the package typescript is not installed' }, () => {
    const flags = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext', '--target', 'es2022'];
    const { stdout } = spawnSync(process.execPath, [compiler, ...flags, 'test/types.ts'], { cwd: new URL('..', import.meta.url), encoding: 'utf8' });
    assert.equal(stdout, '');
});
