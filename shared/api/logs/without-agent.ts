import { nodes } from '../../kinds/nodes/serve.ts';
import * as status from '../../kubernetes/status.ts';
import type { ReadDependencies } from '../request/call.ts';

/** The agent reports itself as a kubelet of this build (agent/bin/agent-process.ts). */
const AGENT_BUILD = '-nodekeeper.';

/**
 * @param what in the plural
 * @throws StatusError 404 without the Node, as upstream; 405 if the node runs a kubelet, which waits for connections
 */
export async function refuseWithoutAgent(
  dependencies: Pick<ReadDependencies, 'storageOf'>,
  nodeName: string,
  what: string,
): Promise<void> {
  const node = await dependencies.storageOf(nodes).get('', nodeName);
  if (node === undefined) throw status.notFound(nodes, nodeName);
  const info = node.status?.['nodeInfo'] as { readonly kubeletVersion?: string } | undefined;
  const version = info?.kubeletVersion ?? '';
  if (version === '' || version.includes(AGENT_BUILD)) return;
  throw status.notServed(
    `node ${status.quote(nodeName)} runs a kubelet (${version}), which serves ${what} only on its own port; ` +
      `${what} are available from nodes that run the nodekeeper agent`,
  );
}
