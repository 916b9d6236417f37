#!/usr/bin/env node
// The commands are TypeScript that runs as it stands, which an older Node cannot: start the one this package brings.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { requireNode } from '../../shared/config/require-node.mjs';
import { HUB_NODE_FLAGS, NODE_FLAGS } from '../../shared/config/serve-flags.mjs';

const own = fileURLToPath(new URL('../../node_modules/node/bin/node', import.meta.url));
const main = fileURLToPath(new URL('./nodekeeper.ts', import.meta.url));
const hasOwn = existsSync(own);
if (!hasOwn) requireNode('nodekeeper', 'install a newer one; `npm ci` brings one to a clone of the repository');
const words = process.argv.slice(2);
const isHub = words.some((word) => word.split('=')[0] === '--upstream');
const flags = words[0] !== 'serve' ? [] : isHub ? HUB_NODE_FLAGS : NODE_FLAGS;
const child = spawn(hasOwn ? own : process.execPath, [...flags, main, ...words], { stdio: 'inherit' });
// A command that runs until it is interrupted ends by itself. The terminal sends Ctrl-C to both processes.
process.on('SIGINT', () => {});
for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
child.on('exit', (code) => {
  process.exitCode = code ?? 1;
});
