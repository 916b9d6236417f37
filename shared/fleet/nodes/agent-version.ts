import type { KubeNode } from '../../kinds/types.ts';

/**
 * The version of nodekeeper-agent on a Node. Only an agent that updates itself sets it, so a release waits for no other
 * node.
 */
export const AGENT_VERSION_ANNOTATION = 'nodekeeper.dev/agent-version';

/** The agent reports itself as a kubelet of this build (agent/bin/agent-process.ts). */
const AGENT_BUILD = '-nodekeeper.';

/** Whether the machine runs nodekeeper-agent and not a kubelet. True before it has reported a version. */
export function runsAgent({ status }: KubeNode): boolean {
  const { kubeletVersion = '' } = status?.nodeInfo ?? {};
  return kubeletVersion === '' || kubeletVersion.includes(AGENT_BUILD);
}
