/** npm run start:aws. Checks the version of Node.js, then runs start.ts. */
import module from 'node:module';
import { fileURLToPath } from 'node:url';
import { requireNode } from '../../shared/config/require-node.mjs';

requireNode('nodekeeper', 'run `npm ci` once, then `npm run start:aws`, which uses the Node.js of this repository');
// The next start then needs neither the compiler of TypeScript nor its memory. Not in the data directory: start.ts
// creates that one for its owner only, and refuses one that is open to others.
module.enableCompileCache(fileURLToPath(new URL('../../node_modules/.cache/nodekeeper', import.meta.url)));
await import('./start.ts');
