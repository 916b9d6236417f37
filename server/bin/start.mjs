/** Starts `nodekeeper serve` in this process. Checks the version of Node.js first. */
import module from 'node:module';
import { fileURLToPath } from 'node:url';
import { requireNode } from '../../shared/config/require-node.mjs';

requireNode('nodekeeper', 'run `npm ci` once, then `npm start`, which uses the Node.js of this repository');
// The next start then needs neither the compiler of TypeScript nor its memory. Not in the data directory: that one is
// made for its owner alone, and one that is open to others is refused.
module.enableCompileCache(fileURLToPath(new URL('../../node_modules/.cache/nodekeeper', import.meta.url)));
// The first start compiles: on a busy machine that lasts. This file has no other part of the program yet.
const loading = setInterval(() => console.error('nodekeeper: loading its program'), 2_000);
const { serveCommand } = await import('./serve.ts');
clearInterval(loading);
process.exit(await serveCommand(process.argv.slice(2)));
