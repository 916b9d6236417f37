/** npm start. Checks the version of Node.js, then runs start.ts. */
import { requireNode } from '../../shared/config/require-node.mjs';

requireNode('nodekeeper', 'run `npm ci` once, then `npm start`, which uses the Node.js of this repository');
await import('./start.ts');
