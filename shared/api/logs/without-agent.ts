import { runsAgent } from '../../fleet/nodes/agent-version.ts';
import { nodes } from '../../kinds/nodes/serve.ts';
import type { KubeNode } from '../../kinds/types.ts';
import * as status from '../../kubernetes/status.ts';
import type { ReadDependencies } from '../call.ts';

/** Begins the version of the runtime of a simulated machine (demo). */
export const SIMULATED_RUNTIME = 'simulated://';

/**
 * @param what in the plural
 * @throws StatusError 404 without the Node, as upstream; 405 if it is simulated or runs a kubelet, which waits for
 * connections
 */
export async function refuseWithoutAgent(
  dependencies: Pick<ReadDependencies, 'storageOf'>,
  nodeName: string,
  what: string,
): Promise<void> {
  const node = await dependencies.storageOf(nodes).get('', nodeName);
  if (node === undefined) throw status.notFound(nodes, nodeName);
  const { kubeletVersion: version = '', containerRuntimeVersion = '' } = (node as KubeNode).status?.nodeInfo ?? {};
  if (runsAgent(node)) return;
  if (containerRuntimeVersion.startsWith(SIMULATED_RUNTIME)) {
    throw status.notServed(
      `node ${status.quote(nodeName)} is simulated, and none of its containers runs; ${what} are available from nodes that ` +
        'run the nodekeeper agent (nodekeeper join-command)',
    );
  }
  throw status.notServed(
    `node ${status.quote(nodeName)} runs a kubelet (${version}), which serves ${what} only on its own port; ` +
      `${what} are available from nodes that run the nodekeeper agent`,
  );
}
