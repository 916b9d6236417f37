/** The first module of the agent, from source and in its bundle. */
import { requireNode } from '../../shared/config/require-node.mjs';

requireNode('nodekeeper-agent', 'install a newer Node.js on this machine');
