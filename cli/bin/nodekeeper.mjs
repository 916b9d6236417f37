#!/usr/bin/env node
// The commands are TypeScript that runs as it stands, which an older Node cannot: start the one this package brings.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { requireNode } from '../../shared/config/require-node.mjs';

const own = fileURLToPath(new URL('../../node_modules/node/bin/node', import.meta.url));
const main = fileURLToPath(new URL('./nodekeeper.ts', import.meta.url));
const hasOwn = existsSync(own);
if (!hasOwn) requireNode('nodekeeper', 'run `npm ci`, which installs one for this repository, or install a newer one');
const { status, error } = spawnSync(hasOwn ? own : process.execPath, [main, ...process.argv.slice(2)], {
  stdio: 'inherit',
});
if (error) throw error;
process.exitCode = status ?? 1;
