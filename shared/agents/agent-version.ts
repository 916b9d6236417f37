/**
 * The version of nodekeeper-agent on a Node. Only an agent that updates itself sets it, so a release waits for no other
 * node.
 */
export const AGENT_VERSION_ANNOTATION = 'nodekeeper.dev/agent-version';
