/** npm start. Checks the version of Node.js, then runs start.ts. */
import module from 'node:module';
import { fileURLToPath } from 'node:url';
import { requireNode } from '../../shared/config/require-node.mjs';

requireNode('nodekeeper', 'run `npm ci` once, then `npm start`, which uses the Node.js of this repository');
// The next start then needs neither the compiler of TypeScript nor its memory.
module.enableCompileCache(fileURLToPath(new URL('../../.nodekeeper/compile-cache', import.meta.url)));
await import('./start.ts');
