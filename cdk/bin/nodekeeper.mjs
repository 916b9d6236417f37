/** The app of cdk.json. Checks the version of Node.js, then runs nodekeeper.ts. */
import { requireNode } from '../../shared/config/require-node.mjs';

requireNode(
  'nodekeeper cdk',
  'run `npm run synth` or `npx cdk`, which use the Node.js that `npm ci` installs, or install a newer one',
);
await import('./nodekeeper.ts');
