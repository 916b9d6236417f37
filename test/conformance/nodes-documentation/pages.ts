import { leases } from './leases.ts';
import { nodeShutdowns } from './node-shutdowns.ts';
import { nodeStatus } from './node-status.ts';
import { nodes } from './nodes.ts';
import type { Page } from './statement.ts';
import { swap } from './swap.ts';
import { taints } from './taints.ts';

export const pages: readonly Page[] = [nodes, nodeStatus, nodeShutdowns, swap, leases, taints];
