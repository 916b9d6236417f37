/** npm run agent: from source. Machines run the bundle of nodekeeper-agent.ts, with the same check in front. */
import './check-node.mjs';

await import('./nodekeeper-agent.ts');
